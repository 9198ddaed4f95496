import type { Routes } from '../../reporters/pull/routes.ts';
import type { Health } from '../health.ts';
import { statusPage } from './page.ts';
import type { StatusReport } from './report.ts';

const json = { 'content-type': 'application/json; charset=utf-8' };

/** `/health` and `/ready`, on every listener of the agent (CONTRACT, HTTP); open, as probes have no credentials. */
export function healthRoutes(health: Health): Routes {
  const answering = (ask: () => { ok: boolean; msg: string }): Routes[string] => ({
    access: 'open',
    handle(_request, reply) {
      const answer = ask();
      reply.send(answer.ok ? 200 : 503, `${JSON.stringify(answer)}\n`, json);
    },
  });
  return { '/health': answering(health.health), '/ready': answering(health.ready) };
}

/** The status page and its JSON. */
export function statusRoutes(report: () => StatusReport): Routes {
  return {
    '/': {
      handle: (_request, reply) =>
        reply.send(200, statusPage(report()), { 'content-type': 'text/html; charset=utf-8' }),
    },
    '/api/status': { handle: (_request, reply) => reply.send(200, `${JSON.stringify(report())}\n`, json) },
  };
}
