import { readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { ReadSecret } from '../../core/access.ts';
import { isLoopback, isWildcard } from '../../core/address.ts';
import { systemCode } from '../../core/errors.ts';
import type { Clock, Drops } from '../../core/ports.ts';
import type { BackupOptions } from '../../probes/backups/block.ts';
import { journalPath, readRuns, recordRun } from '../../probes/backups/journal.ts';
import type { ProbeReport } from '../../probes/runner/probe-state.ts';
import { type Authenticator, createAuthenticator } from '../../reporters/listen/auth.ts';
import type { Reply, Request, Routes } from '../../reporters/listen/http.ts';
import { machineAddresses } from '../config/environment.ts';
import type { AdminConfig } from '../config/types.ts';
import { shippedFolder } from '../installation.ts';
import type { History } from './history.ts';
import type { Live } from './live.ts';
import type { StatusReport } from './report.ts';
import { type Health, probeDebug, probeStatus } from './status.ts';

const json = { 'content-type': 'application/json; charset=utf-8' };

/** `/health` and `/ready`, on every listener of the agent (docs/http-api.md); open, as probes have no credentials. */
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

/** Results of the probes, and a run on demand of a configured one; a request cannot name another target. */
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
  [
    'No such probe. Use /probe?name=…, and &debug=1 for all that is known, with one of these:',
    ...names,
    '',
  ].join('\n');

/** The data of the status page. */
export interface StatusSources {
  report(): StatusReport;
  live: Live;
  history: History;
}

/** Copies of the history under way at a time. */
const mostCopies = 4;

/** What the status page shows, as JSON, as a stream of changes, and as the history of what it plots. */
export function statusRoutes({ report, live, history }: StatusSources): Routes {
  let packing = 0;
  return {
    '/api/status': { handle: (_request, reply) => reply.send(200, `${JSON.stringify(report())}\n`, json) },
    '/api/events': live.route,
    '/api/history': {
      handle(_request, reply) {
        // Each answer is a copy of the history, which a slow client holds for the deadline of the listener.
        if (packing >= mostCopies)
          return reply.send(503, 'Busy; try again in a second.\n', { 'retry-after': '1' });
        packing++;
        reply.closed(() => packing--);
        return reply.send(200, history.packed(), { 'content-type': 'application/octet-stream' });
      },
    },
  };
}

/** Whether a Host header names this very listener: a loopback name or address, its own address, or a host allowed. */
export function namesListener(
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
  if (
    allowedHosts.some((allowed) => allowed.toLowerCase() === header.toLowerCase() || name(allowed) === host)
  )
    return true;
  const own = name(listenAddress);
  return isWildcard(own) ? machineAddresses().has(host) : own === host;
}

/**
 * Whether a page of another origin has its browser send this: an image or a frame that would run a probe, a form, a link.
 * Browsers say so in a header (w3.org, Fetch Metadata Request Headers); those that do not know it send `Origin` with
 * whatever changes something.
 */
function isSentByOthers({ 'sec-fetch-site': site, origin, host = '' }: IncomingHttpHeaders): boolean {
  if (site !== undefined) return site !== 'none' && site !== 'same-origin';
  if (origin === undefined) return false;
  if (!URL.canParse(origin)) return true;
  const { protocol, host: sender } = new URL(origin);
  const own = `${protocol}//${host}`;
  return !URL.canParse(own) || new URL(own).host !== sender;
}

/**
 * The routes for requests that name this listener in their Host header; for others 403. A page in an operator's
 * browser whose host name is rebound to this address cannot read them. Refuses whatever a page of another origin sends.
 */
export function routesOfHost(routes: Routes, admin: AdminConfig, refused: () => void): Routes {
  const checked = (route: Routes[string]): Routes[string] => ({
    ...route,
    handle(request, reply) {
      const { headers } = request.message;
      if (isSentByOthers(headers)) {
        refused();
        return reply.send(
          403,
          'Forbidden: the request comes from a page of another origin. Open the address itself.\n',
        );
      }
      if (namesListener(headers.host, admin)) return route.handle(request, reply);
      refused();
      return reply.send(
        403,
        'Forbidden. The Host header names another host; add it to admin.allowedHosts.\n',
      );
    },
  });
  return Object.fromEntries(Object.entries(routes).map(([path, route]) => [path, checked(route)]));
}

/** The files of the page, as scripts/build.mjs writes them. */
const files: Readonly<Record<string, readonly [file: string, type: string]>> = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/page.css': ['page.css', 'text/css; charset=utf-8'],
  '/icon.svg': ['icon.svg', 'image/svg+xml'],
};

/**
 * Scripts, styles and data come from this listener alone, nothing is inline, and no text becomes markup: the page has
 * no Trusted Types policy.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const headers = (type: string) => ({
  'content-type': type,
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
});

async function sendFile(reply: Reply, folder: string, file: string, type: string): Promise<void> {
  try {
    reply.send(200, await readFile(join(shippedFolder(folder), file)), headers(type));
  } catch (thrown) {
    if (systemCode(thrown) !== 'ENOENT') throw thrown;
    reply.send(404, `No file ${file}.\n`);
  }
}

/** The status page and the runbooks that it shows. Nothing of it depends on the agent's data. */
export function pageRoutes(): Routes {
  const page = Object.entries(files).map(([path, [file, type]]): [string, Routes[string]] => [
    path,
    { handle: (_request, reply) => sendFile(reply, 'dist/page', file, type) },
  ]);
  const runbook: Routes[string] = {
    async handle({ url }, reply) {
      const [, file] = /^\/runbooks\/((?:recovery\/)?[A-Za-z0-9-]{1,64}\.md)$/.exec(url.pathname) ?? [];
      if (file) await sendFile(reply, 'runbooks', file, 'text/markdown; charset=utf-8');
      else reply.send(404, 'No such runbook.\n');
    },
  };
  return { ...Object.fromEntries(page), '/runbooks/*': runbook };
}

export interface HeartbeatDeps {
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
}

/**
 * `POST /backup/NAME/start|success|fail` for each backup whose source is a heartbeat (docs/http-api.md). They require the
 * token of the backup as a bearer token, in place of the credentials of the listener. `success` takes `?size=BYTES`.
 */
export function heartbeatRoutes(
  backups: readonly BackupOptions[],
  stateDirectory: string,
  { readSecret, clock, drops }: HeartbeatDeps,
): Routes {
  const tokens = new Map<string, Authenticator>();
  for (const { name, source } of backups) {
    if (source.kind === 'heartbeat')
      tokens.set(name, createAuthenticator({ bearer: source.token }, { readSecret }));
  }
  if (tokens.size === 0) return {};

  const record = async (name: string, event: string, size: number | undefined): Promise<void> => {
    const journal = journalPath(stateDirectory, 'backup', name);
    const nowMs = clock.nowMs();
    if (event === 'start') return recordRun(journal, { startMs: nowMs });
    const begun = (await readRuns(journal)).findLast(({ endMs }) => endMs === undefined);
    const status = event === 'success' ? 0 : 1;
    const msg = event === 'success' ? undefined : 'the backup reported a failure';
    await recordRun(journal, {
      startMs: begun?.startMs ?? nowMs,
      // The clock may have been set back since the start.
      endMs: Math.max(begun?.startMs ?? nowMs, nowMs),
      status,
      msg,
      sizeBytes: size,
    });
  };

  const handle = async ({ url, message }: Request, reply: Reply): Promise<void> => {
    const [, name = '', event = ''] = /^\/backup\/([\w.-]+)\/(start|success|fail)$/.exec(url.pathname) ?? [];
    const token = tokens.get(name);
    // An unknown name costs a comparison too, so that the timing does not show which backups there are.
    const verdict = await (token ?? [...tokens.values()][0]!).authenticate(message.headers.authorization);
    if (verdict !== 'accepted') {
      drops.count('pull', 'unauthorized');
      reply.send(401, 'Unauthorized.\n', {
        'www-authenticate': 'Bearer realm="svc-agent"',
        connection: 'close',
      });
      return;
    }
    const size = url.searchParams.get('size');
    if (!token || (size !== null && !/^\d{1,16}$/.test(size))) {
      reply.send(token ? 400 : 404, token ? 'size is not a number of bytes.\n' : 'No such backup.\n');
      return;
    }
    await record(name, event, size === null ? undefined : Number(size));
    reply.send(200, 'Recorded.\n');
  };
  return { '/backup/*': { methods: ['POST'], access: 'open', handle } };
}
