import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback, isWildcard } from '../../core/address.ts';
import type { ProbeReport } from '../../probes/runner/probe-state.ts';
import type { Routes } from '../../reporters/listen/http.ts';
import { machineAddresses } from '../config/environment.ts';
import type { AdminConfig } from '../config/types.ts';
import type { StatusReport } from '../report.ts';
import type { Health } from './health.ts';
import type { History } from './history.ts';
import type { Live } from './live.ts';
import { probeDebug, probeStatus } from './status.ts';

const json = { 'content-type': 'application/json; charset=utf-8' };

/**
 * `/health` and `/ready`, on every listener of the agent (docs/http-api.md); they need no credentials, because probes have none.
 */
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

/** Results of the probes, and a run on demand of a configured probe; a request cannot name another target. */
export function probeRoutes(
  reports: () => readonly ProbeReport[],
  checkNow: (name: string) => Promise<ProbeReport | undefined>,
): Routes {
  return {
    '/probes': {
      handle: (_request, reply) =>
        reply.send(200, `${JSON.stringify(reports().map(probeStatus), null, 2)}\n`, json),
    },
    '/probe': {
      async handle({ url: { searchParams } }, reply) {
        const name = searchParams.get('name');
        const report = name ? await checkNow(name) : undefined;
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
  ['No such probe. Use /probe?name=NAME; &debug=1 adds every detail. The probes are:', ...names, ''].join(
    '\n',
  );

/** The data of the status page. */
export interface StatusSources {
  report(): StatusReport;
  live: Live;
  history: History;
}

/** The maximum number of copies of the history that are being sent at a time. */
const mostCopies = 4;

/** The content of the status page, as JSON, as a stream of changes, and as the history of the plotted values. */
export function statusRoutes({ report, live, history }: StatusSources): Routes {
  let packing = 0;
  return {
    '/api/status': { handle: (_request, reply) => reply.send(200, `${JSON.stringify(report())}\n`, json) },
    '/api/events': live.route,
    '/api/history': {
      handle(_request, reply) {
        // Each response is a copy of the history, which a slow client holds until the deadline of the listener.
        if (packing >= mostCopies)
          return reply.send(503, 'Busy; try again in a second.\n', { 'retry-after': '1' });
        packing++;
        reply.closed(() => packing--);
        return reply.send(200, history.packed(), { 'content-type': 'application/octet-stream' });
      },
    },
  };
}

/** Whether a Host header names this listener: a loopback name or address, the listener's own address, or an allowed host. */
function namesListener(
  header: string | undefined,
  { listenAddress, allowedHosts = [] }: Pick<AdminConfig, 'listenAddress' | 'allowedHosts'>,
): boolean {
  // Browsers always send one.
  if (header === undefined) return true;
  const name = (text: string) =>
    text
      .toLowerCase()
      .replace(/:\d*$/, '')
      .replace(/^\[|\]$/g, '')
      .replace(/\.$/, '');
  const host = name(header);
  const isLocal = host === 'localhost' || host.endsWith('.localhost');
  if (isLocal || (isIP(host) !== 0 && isLoopback(host))) return true;
  if (allowedHosts.some((allowed) => name(allowed) === host)) return true;
  const own = name(listenAddress);
  return isWildcard(own) ? machineAddresses().has(host) : own === host;
}

/**
 * Whether a page of another origin makes its browser send this request: an image or a frame that would run a probe, a form, a
 * link. Browsers say so in a header (w3.org, Fetch Metadata Request Headers). Browsers that do not know the header send `Origin`
 * with every request that changes something.
 */
function isSentByOthers({ 'sec-fetch-site': site, origin, host = '' }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site !== 'none' && site !== 'same-origin';
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const { protocol, host: sender } = new URL(origin);
  const own = `${protocol}//${host}`;
  return !URL.canParse(own) || new URL(own).host !== sender;
}

/** The routes with a check before each: a text says why a request gets 403. */
function checkedRoutes(
  routes: Routes,
  whyNot: (headers: IncomingHttpHeaders) => string | undefined,
  refused: () => void,
): Routes {
  const checked = (route: Routes[string]): Routes[string] => ({
    ...route,
    handle(request, reply) {
      const why = whyNot(request.message.headers);
      if (why === undefined) return route.handle(request, reply);
      refused();
      return reply.send(403, why);
    },
  });
  return Object.fromEntries(Object.entries(routes).map(([path, route]) => [path, checked(route)]));
}

const whyOfOthers = (headers: IncomingHttpHeaders): string | undefined =>
  isSentByOthers(headers)
    ? 'Forbidden: the request comes from a page of another origin. Open the address directly.\n'
    : undefined;

/** The routes without the requests that a page of another origin sends. They accept any host name. */
export const routesOfOrigin = (routes: Routes, refused: () => void): Routes =>
  checkedRoutes(routes, whyOfOthers, refused);

/**
 * The routes for requests that name this listener in their Host header; other requests get 403. A page in an operator's browser
 * whose host name is rebound to this address therefore cannot read them. Also refuses everything that a page of another origin
 * sends.
 */
export const routesOfHost = (routes: Routes, admin: AdminConfig, refused: () => void): Routes =>
  checkedRoutes(
    routes,
    (headers) =>
      whyOfOthers(headers) ??
      (namesListener(headers.host, admin)
        ? undefined
        : 'Forbidden. The Host header names another host; add it to admin.allowedHosts.\n'),
    refused,
  );
