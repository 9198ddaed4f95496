import type { RequestListener } from 'node:http';
import { type Incident, incidentKinds, parseIncident } from './incidents.ts';

const usage = `The example service. Make something go wrong:
${incidentKinds.map((kind) => `  curl -X POST 'http://HOST/incident?kind=${kind}'`).join('\n')}
&target= names a role, of a backlog a task list.
`;

/** The control listener: `POST /incident?kind=…&target=…`; everything else is answered with the usage. */
export function controlListener(strike: (incident: Incident) => void): RequestListener {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://example');
    response.setHeader('content-type', 'text/plain; charset=utf-8');
    if (request.method !== 'POST' || pathname !== '/incident') {
      response.statusCode = pathname === '/' ? 200 : 404;
      response.end(usage.replaceAll('HOST', request.headers.host ?? '127.0.0.1'));
      return;
    }
    try {
      const incident = parseIncident(`${searchParams.get('kind') ?? ''} ${searchParams.get('target') ?? ''}`);
      strike(incident);
      response.end(`${incident.kind} ${incident.target}\n`);
    } catch (thrown) {
      response.statusCode = 400;
      response.end(`${(thrown as Error).message}\n`);
    }
  };
}
