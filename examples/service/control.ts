import type { RequestListener } from 'node:http';
import { type IncidentKind, type Order, parseOrder } from './incidents.ts';

const usageAt = (
  host: string,
  kinds: readonly IncidentKind[],
) => `The example service. Make something go wrong:
${kinds.map((kind) => `  curl -X POST 'http://${host}/incident?kind=${kind}'`).join('\n')}
&target= names a role, a task list, a database, a domain or a cluster; one that does not exist is answered with those that do.
An incident lasts until it is ended:
  curl -X POST 'http://${host}/end'    all; ?kind= one kind
`;

/**
 * The control listener: `POST /incident?kind=…&target=…` and `POST /end?kind=…`; everything else is answered with the
 * usage. `obey` returns what to answer.
 */
export function controlListener(
  kinds: readonly IncidentKind[],
  obey: (order: Order) => string,
): RequestListener {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://example');
    response.setHeader('content-type', 'text/plain; charset=utf-8');
    if (request.method !== 'POST' || !['/incident', '/end'].includes(pathname)) {
      response.statusCode = pathname === '/' ? 200 : 404;
      response.end(usageAt(request.headers.host ?? '127.0.0.1', kinds));
      return;
    }
    try {
      const words = ['kind', 'target'].map((key) => searchParams.get(key) ?? '').join(' ');
      response.end(`${obey(parseOrder(pathname === '/end' ? `end ${words}` : words, kinds))}\n`);
    } catch (thrown) {
      response.statusCode = 400;
      response.end(`${(thrown as Error).message}\n`);
    }
  };
}
