import { scrapeMarkHeader } from '../../core/access.ts';
import { sanitizeName } from '../../core/labels.ts';
import type { Clock, Drops, Gather, Log, Reporter } from '../../core/ports.ts';
import type { Routes } from '../listen/http.ts';
import type { Listener } from '../listen/listener.ts';
import type { PullOptions } from './block.ts';
import { contentTypes, createRenderer } from './exposition.ts';
import { chooseFormat, wantsGzip } from './negotiation.ts';
import { createRounds, roleDownText, type Shown, selectionOf } from './scrapes.ts';

export interface PullDeps extends Shown {
  /** Binds the block's address, or shares what an earlier configuration has bound there. */
  bind(address: string): Promise<Listener>;
  /** What the listener serves besides `/metrics`. */
  routes: Routes;
  /** Whether the role's last scrape (without one: its health check) failed; false for a role with neither. */
  roleDown(role: string): boolean;
  /** What this agent's own scrapes bear in `scrapeMarkHeader`; one that comes back here is answered 508. */
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
/** What the answer's way back to the scraper may take. */
const returnMs = 500;

/** Monotonic moment by which a scrape must be gathered; Infinity if the scraper does not say. */
function deadlineOf(header: string | string[] | undefined, clock: Clock): number {
  const timeoutMs = Number(header ?? Number.NaN) * 1_000;
  if (!(timeoutMs > 0)) return Infinity;
  return clock.monotonicMs() + Math.max(0, timeoutMs - returnMs);
}

/** `/metrics`: CONTRACT, HTTP. HEAD gathers nothing. */
export function metricsRoutes(options: PullReporterOptions, deps: PullDeps, gather: Gather): Routes {
  const vary = options.openMetrics ? 'Accept, Accept-Encoding' : 'Accept-Encoding';
  const renderer = createRenderer(options.prefix ? sanitizeName(`${options.prefix}_`) : '');
  const rounds = createRounds({ ...deps, gather, renderer, vary });

  return {
    '/metrics': {
      handle({ url, message }, reply) {
        const { headers } = message;
        if (deps.mark !== undefined && headers[scrapeMarkHeader] === deps.mark) {
          return reply.send(508, 'This agent would relay itself.\n');
        }
        const selection = selectionOf(url.searchParams, deps);
        if (!selection) return reply.send(404, 'No such service here. Use a watched role, or agent.\n');
        const format = chooseFormat(headers.accept, options.openMetrics);
        const encoding = headers['accept-encoding'];
        const gzip = wantsGzip(Array.isArray(encoding) ? encoding.join() : encoding);
        if (message.method !== 'HEAD') {
          return rounds.join(selection, deadlineOf(headers[timeoutHeader], deps.clock), {
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
 * The pull reporter (spec, `pullmetrics`). Starts by binding its address; throws what `bind` throws. What a
 * reader does not fetch is not kept: the next scrape has newer totals.
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
