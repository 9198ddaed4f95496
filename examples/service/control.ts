import type { RequestListener } from 'node:http';
import { type Incident, type IncidentKind, parseIncident } from './incidents.ts';

const usageAt = (
  host: string,
  kinds: readonly IncidentKind[],
) => `The example service. Make something go wrong:
${kinds.map((kind) => `  curl -X POST 'http://${host}/incident?kind=${kind}'`).join('\n')}
&target= names a role, a task list, a database or a domain; one that does not exist is answered with those that do.
`;

/** The control listener: `POST /incident?kind=…&target=…`; everything else is answered with the usage. */
export function controlListener(
  kinds: readonly IncidentKind[],
  strike: (incident: Incident) => void,
): RequestListener {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://example');
    response.setHeader('content-type', 'text/plain; charset=utf-8');
    if (request.method !== 'POST' || pathname !== '/incident') {
      response.statusCode = pathname === '/' ? 200 : 404;
      response.end(usageAt(request.headers.host ?? '127.0.0.1', kinds));
      return;
    }
    try {
      const words = ['kind', 'target'].map((key) => searchParams.get(key) ?? '');
      const incident = parseIncident(words.join(' '), kinds);
      strike(incident);
      response.end(`${incident.kind} ${incident.target}\n`);
    } catch (thrown) {
      response.statusCode = 400;
      response.end(`${(thrown as Error).message}\n`);
    }
  };
}
