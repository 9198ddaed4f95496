import type { ProbeReport } from '../../probes/runner/probe-state.ts';
import type { Routes } from '../../reporters/listen/http.ts';
import { statusPage } from './page.ts';
import { type Health, probeDebug, probeStatus, type StatusReport } from './status.ts';

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

/** What probes found, and a look on demand at one that is configured: nobody can name another target. */
export function probeRoutes(
  reports: () => readonly ProbeReport[],
  look: (name: string) => Promise<ProbeReport | undefined>,
): Routes {
  return {
    '/probes': {
      handle: (_request, reply) =>
        reply.send(200, `${JSON.stringify(reports().map(probeStatus), null, 2)}\n`, json),
    },
    '/probe': {
      async handle({ url: { searchParams } }, reply) {
        const name = searchParams.get('name');
        const report = name ? await look(name) : undefined;
        const isDebug = searchParams.get('debug') === '1';
        if (report)
          reply.send(
            200,
            `${JSON.stringify(isDebug ? probeDebug(report) : probeStatus(report), null, 2)}\n`,
            json,
          );
        else reply.send(name ? 404 : 400, unknownProbe(reports().map((known) => known.name)));
      },
    },
  };
}

const unknownProbe = (names: readonly string[]): string =>
  [
    'No such probe. Use /probe?name=…, and &debug=1 for all that is known, with one of these:',
    ...names,
    '',
  ].join('\n');

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
