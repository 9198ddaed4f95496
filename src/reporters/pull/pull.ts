import { scrapeMarkHeader } from '../../core/access.ts';
import { sanitizeName } from '../../core/labels.ts';
import type { Clock, Drops, Gather, Log, Reporter } from '../../core/ports.ts';
import type { Routes } from '../listen/http.ts';
import type { Listener } from '../listen/listener.ts';
import type { PullOptions } from './block.ts';
import { contentTypes, createRenderer, type Format } from './exposition.ts';
import { createScrapes, roleDownText, type Shown, selectionOf } from './scrapes.ts';

interface Range {
  /** `type/subtype` or an encoding, lower case. */
  readonly name: string;
  readonly version: string | undefined;
  readonly q: number;
}

/** Parses `Accept` and `Accept-Encoding` (RFC 9110, 12.5); an invalid q counts as 0. */
function ranges(header: string | undefined): Range[] {
  return (header ?? '')
    .split(',')
    .map((item) => item.split(';').map((word) => word.trim().toLowerCase()))
    .filter(([name]) => name)
    .map(([name = '', ...words]) => {
      const parameters = new Map(
        words.map((word): [string, string] => {
          const [key = '', value = ''] = word.split(/\s*=\s*/, 2);
          return [key, value];
        }),
      );
      const q = Number(parameters.get('q') ?? '1');
      const version = parameters.get('version')?.replaceAll('"', '');
      return { name, version, q: q >= 0 && q <= 1 ? q : 0 };
    });
}

/** The q of the most specific of `names` in the header; undefined if none is there. */
function quality(wanted: readonly Range[], names: readonly string[], version?: string): number | undefined {
  for (const name of names) {
    const found = wanted.filter(
      (range) => range.name === name && (!range.version || !version || range.version === version),
    );
    if (found.length > 0) return Math.max(...found.map(({ q }) => q));
  }
  return undefined;
}

/**
 * The format for an `Accept` header: OpenMetrics if `openMetrics` allows it and the client prefers version 1.0.0 (or
 * no version) at least as much as text; otherwise text, also for a client that accepts neither.
 */
export function chooseFormat(accept: string | undefined, openMetrics: boolean): Format {
  if (!openMetrics) return 'text';
  const wanted = ranges(accept);
  const structured = quality(wanted, ['application/openmetrics-text', 'application/*'], '1.0.0') ?? 0;
  const plain = quality(wanted, ['text/plain', 'text/*', '*/*'], '0.0.4') ?? 0;
  return structured > 0 && structured >= plain ? 'openmetrics' : 'text';
}

/** Whether an `Accept-Encoding` header prefers gzip at least as much as no compression. */
export function wantsGzip(acceptEncoding: string | undefined): boolean {
  const wanted = ranges(acceptEncoding);
  const gzip = quality(wanted, ['gzip', 'x-gzip', '*']) ?? 0;
  return gzip > 0 && gzip >= (quality(wanted, ['identity']) ?? 0);
}

export interface PullDeps extends Shown {
  /** Binds the block's address, or shares the listener of the earlier configuration. */
  bind(address: string): Promise<Listener>;
  /** Routes of the listener besides `/metrics`. */
  routes: Routes;
  /** Whether the role's last scrape (without one: its health check) failed; false for a role with neither. */
  roleDown(role: string): boolean;
  /** Value of `scrapeMarkHeader` in this agent's own scrapes; a scrape with it gets status 508. */
  mark?: string;
  clock: Clock;
  drops: Drops;
  log: Log;
}

export type PullReporterOptions = Pick<PullOptions, 'listenAddress' | 'openMetrics'> & {
  /** The block's `prefix`: `p` makes `p_name`. */
  prefix?: string;
};

const timeoutHeader = 'x-prometheus-scrape-timeout-seconds';
/** Time for the response to reach the scraper. */
const returnMs = 500;

/** Monotonic time by which a scrape must be gathered; Infinity if the scraper sends no timeout. */
function deadlineOf(header: string | string[] | undefined, clock: Clock): number {
  const timeoutMs = Number(header ?? Number.NaN) * 1_000;
  if (!(timeoutMs > 0)) return Infinity;
  return clock.monotonicMs() + Math.max(0, timeoutMs - returnMs);
}

/** `/metrics`: CONTRACT, HTTP. HEAD gathers nothing. */
export function metricsRoutes(options: PullReporterOptions, deps: PullDeps, gather: Gather): Routes {
  const vary = options.openMetrics ? 'Accept, Accept-Encoding' : 'Accept-Encoding';
  const renderer = createRenderer(options.prefix ? sanitizeName(`${options.prefix}_`) : '');
  const scrapes = createScrapes({ ...deps, gather, renderer, vary });

  return {
    '/metrics': {
      handle({ url, message }, reply) {
        const { headers } = message;
        if (deps.mark !== undefined && headers[scrapeMarkHeader] === deps.mark) {
          return reply.send(508, 'The agent must not scrape itself.\n');
        }
        const selection = selectionOf(url.searchParams, deps);
        if (!selection) return reply.send(404, 'Unknown service. Use a watched role, or agent.\n');
        const format = chooseFormat(headers.accept, options.openMetrics);
        const encoding = headers['accept-encoding'];
        const gzip = wantsGzip(Array.isArray(encoding) ? encoding.join() : encoding);
        if (message.method !== 'HEAD') {
          return scrapes.join(selection, deadlineOf(headers[timeoutHeader], deps.clock), {
            format,
            gzip,
            reply,
          });
        }
        if (selection.role !== undefined && deps.roleDown(selection.role)) {
          return reply.send(503, roleDownText(selection.role));
        }
        const head = { 'content-type': contentTypes[format], vary };
        reply.open(200, gzip ? { ...head, 'content-encoding': 'gzip' } : head).end();
      },
    },
  };
}

/**
 * The pull reporter (spec, `pullmetrics`). `start` binds its address and throws what `bind` throws. Nothing is kept
 * for scrapes that were missed: the next one has newer totals.
 */
export function createPull(options: PullReporterOptions, deps: PullDeps): Reporter {
  return {
    async start(gather) {
      const listener = await deps.bind(options.listenAddress);
      listener.routes = { ...deps.routes, ...metricsRoutes(options, deps, gather) };
      return () => listener.close();
    },
  };
}
