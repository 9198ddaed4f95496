import { createGzip } from 'node:zlib';
import { scrapeMarkHeader } from '../../core/access.ts';
import type { View } from '../../core/model.ts';
import type { Clock, Drops, Gather, GatherRequest, Log, Reporter } from '../../core/ports.ts';
import { sanitizeName } from '../../core/registry/labels.ts';
import type { PullOptions } from '../block.ts';
import type { Body, Reply, Routes } from '../listen/http.ts';
import type { Listener } from '../listen/listener.ts';
import { contentTypes, createRenderer, type Format, type Renderer } from './exposition.ts';
import { chooseFormat, wantsGzip } from './negotiation.ts';

export interface PullDeps extends ReportedServices {
  /** Binds the block's address, or shares the listener of the earlier configuration. */
  bind(address: string): Promise<Listener>;
  /** Routes of the listener besides `/metrics`. */
  routes: Routes;
  /**
   * Whether the role's last scrape failed, or without a scrape its health check; false for a role without a scrape and a health
   * check.
   */
  roleDown(role: string): boolean;
  /** The value of `scrapeMarkHeader` in this agent's own scrapes; a scrape with it gets status 508. */
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

/** The monotonic time by which a scrape must be gathered; Infinity if the scraper sends no timeout. */
function deadlineOf(header: string | string[] | undefined, clock: Clock): number {
  const timeoutMs = Number(header ?? Number.NaN) * 1_000;
  if (!(timeoutMs > 0)) return Infinity;
  return clock.monotonicMs() + Math.max(0, timeoutMs - returnMs);
}

/** The route `/metrics` (docs/http-api.md). HEAD gathers nothing. */
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
 * The pull reporter (spec, `pullmetrics`). `start` binds its address and throws what `bind` throws. Nothing is stored for missed
 * scrapes, because the next scrape has newer totals.
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

/** A scrape that waits for its page. */
interface PendingScrape {
  readonly format: Format;
  readonly gzip: boolean;
  readonly reply: Reply;
}

interface ScrapesDeps {
  gather: Gather;
  renderer: Renderer;
  log: Log;
  drops: Drops;
  /** Whether the role's last scrape or health check failed; called after the gather. */
  roleDown(role: string): boolean;
  vary: string;
}

/** Scrapes that share a gather. */
interface ScrapeGroup {
  readonly selection: Selection;
  /** The monotonic deadline; Infinity if the scraper does not send its timeout. */
  readonly deadlineMs: number;
  readonly scrapes: PendingScrape[];
}

interface Scrapes {
  /** Answers a scrape, together with a group that is still open, or with the next group; `deadlineMs` is as in `GatherRequest`. */
  join(selection: Selection, deadlineMs: number, scrape: PendingScrape): void;
}

/** The maximum number of pages that clients have not read completely, which bounds memory. */
const pagesInProgress = 16;

/** The body for a role that is down. With status 503, `up` of its scrape job shows the state of the role. */
const roleDownText = (role: string): string =>
  `Role ${role} is down: its last scrape or health check failed.\n`;

/** Sends the headers of all these responses and returns one sink for their bodies. */
function openSink(scrapes: readonly PendingScrape[], format: Format, vary: string): Sink {
  const opened = (gzip: boolean): Sink[] => {
    const encoding = gzip ? { 'content-encoding': 'gzip' } : {};
    const headers = { 'content-type': contentTypes[format], vary, ...encoding };
    return scrapes.filter((scrape) => scrape.gzip === gzip).map(({ reply }) => reply.open(200, headers));
  };
  const zipped = opened(true);
  const plain = opened(false);
  if (zipped.length === 0) return together(plain);
  const compressed = gzipped(together(zipped));
  return plain.length === 0 ? compressed : together([...plain, compressed]);
}

/**
 * The memory of pages that all clients have read, which is used for the next page. Memory that is allocated for each page would
 * be outside of the heap and yet drive V8's garbage collector: a page of 100,000 series would cost a collection of the whole
 * heap.
 */
function createPageMemory() {
  let pages: { readonly sink: Sink; readonly pieces: ArrayBuffer[] }[] = [];
  return {
    /** The free memory; what the next page does not use is released. */
    spare(): ArrayBuffer[] {
      const free = pages.filter(({ sink }) => sink.done).flatMap(({ pieces }) => pieces);
      pages = pages.filter(({ sink }) => !sink.done);
      return free;
    },
    /** The place for the memory of each piece that is written to `sink`. */
    of(sink: Sink): ArrayBuffer[] {
      const pieces: ArrayBuffer[] = [];
      pages.push({ sink, pieces });
      return pieces;
    },
  };
}

/**
 * Renders the view until its end, or until all clients are gone; aborts the responses if rendering fails. Pieces that
 * are only compressed are used again for the same page, which waits for the compression.
 */
async function writePage(
  render: (spare: ArrayBuffer[]) => AsyncIterable<Buffer>,
  sink: Sink,
  spare: ArrayBuffer[],
  used: ArrayBuffer[],
): Promise<void> {
  try {
    for await (const piece of render(spare)) {
      const memory = piece.buffer as ArrayBuffer;
      if (sink.done) break;
      if (sink.compress) await sink.compress(piece, () => spare.push(memory));
      else {
        sink.write(piece);
        used.push(memory);
      }
    }
    if (sink.compress) used.push(...spare.splice(0, piecesAhead));
  } catch (thrown) {
    sink.cut();
    throw thrown;
  }
  if (sink.done) sink.cut();
  else sink.end();
}

/** The maximum number of pieces that wait for the compression. */
const piecesAhead = 4;

/** Limits the pages in progress: beyond the limit the clients of the oldest page are disconnected and counted. */
function createDelivery(drops: Drops): (sink: Sink) => void {
  let inProgress: Sink[] = [];
  return (sink) => {
    inProgress = inProgress.filter(({ done }) => !done);
    if (inProgress.length >= pagesInProgress) {
      drops.count('pull', 'slow_reader');
      inProgress.shift()?.cut();
    }
    inProgress.push(sink);
  };
}

/** Renders a view for all scrapes of a group that still wait, once per format. */
function createGroupAnswer(deps: ScrapesDeps): (view: View, group: ScrapeGroup) => Promise<void> {
  const deliver = createDelivery(deps.drops);
  const memory = createPageMemory();

  return async (view, { selection, scrapes }) => {
    const { role } = selection;
    if (role !== undefined && deps.roleDown(role)) {
      for (const { reply } of scrapes) reply.send(503, roleDownText(role));
      return;
    }
    for (const format of ['text', 'openmetrics'] as const) {
      const wanted = scrapes.filter((scrape) => scrape.format === format && !scrape.reply.gone);
      if (wanted.length === 0) continue;
      const sink = openSink(wanted, format, deps.vary);
      deliver(sink);
      const render = (spare: ArrayBuffer[]) => deps.renderer.render(view, format, spare);
      await writePage(render, sink, memory.spare(), memory.of(sink));
    }
  };
}

/**
 * Answers scrapes in groups: scrapes with the same selection that arrive before the view is frozen share one gather, one
 * rendering per format and one compression. A view is held only while it is rendered, not while clients read. If too many pages
 * are in progress, the clients of the oldest page are disconnected and counted.
 */
function createScrapes(deps: ScrapesDeps): Scrapes {
  const open = new Map<string, ScrapeGroup>();
  const show = createGroupAnswer(deps);

  const run = async (group: ScrapeGroup): Promise<void> => {
    const { selection, deadlineMs } = group;
    const frozen = (): void => {
      if (open.get(selection.key) === group) open.delete(selection.key);
    };
    try {
      const view = await deps.gather({ takes: selection.takes, deadlineMs, frozen });
      frozen();
      await show(view, group).finally(() => view.release());
    } catch (thrown) {
      frozen();
      deps.log.write('error', 'scrape failed', { error: thrown });
      for (const { reply } of group.scrapes) {
        if (!reply.begun) reply.send(500, 'Internal error.\n');
      }
    }
  };

  return {
    join(selection, deadlineMs, scrape) {
      const current = open.get(selection.key);
      // A group with a later deadline would answer this scrape too late.
      if (current && current.deadlineMs <= deadlineMs) return void current.scrapes.push(scrape);
      const group = { selection, deadlineMs, scrapes: [scrape] };
      open.set(selection.key, group);
      // The group runs one turn later, so that scrapes that arrive together share it even if the freeze is immediate.
      setImmediate(() => void run(group));
    },
  };
}

/** Receives the pieces of a page: one response body, or several. */
interface Sink extends Body {
  /**
   * Writes a piece whose memory is free after `onRead`, whatever the clients have read. Resolves when the next piece may be
   * written. It exists only if all clients want the page compressed.
   */
  compress?(piece: Buffer, onRead: () => void): Promise<void> | undefined;
}

/** Combines several sinks into one, which is done when all are done. */
function together(sinks: readonly Sink[]): Sink {
  const each = (call: (sink: Sink) => void): void => sinks.forEach(call);
  return {
    write: (piece) => each((sink) => sink.write(piece)),
    end: () => each((sink) => sink.end()),
    cut: () => each((sink) => sink.cut()),
    get done() {
      return sinks.every(({ done }) => done);
    },
  };
}

/**
 * Compresses into `sink`, outside of the event loop. Level 1 is used, because the default takes three times as long on exposition
 * text and saves a few percent of its size (bench/render.ts).
 */
function gzipped(sink: Sink): Sink {
  const gzip = createGzip({ level: 1, chunkSize: 65_536 });
  gzip.on('data', (piece: Buffer) => sink.write(piece));
  gzip.on('end', () => sink.end());
  gzip.on('error', () => sink.cut());
  let waiting = 0;
  let goOn: (() => void) | undefined;
  return {
    write: (piece) => void gzip.write(piece),
    compress(piece, onRead) {
      waiting += 1;
      // The callback is also called for the rest when the stream is destroyed.
      gzip.write(piece, () => {
        waiting -= 1;
        onRead();
        goOn?.();
      });
      if (waiting < piecesAhead) return undefined;
      return new Promise((resolve) => {
        goOn = resolve;
      });
    },
    end: () => void gzip.end(),
    cut() {
      gzip.destroy();
      sink.cut();
    },
    get done() {
      return sink.done;
    },
  };
}

/** The services that a block reports, and the roles that the agent watches. */
export interface ReportedServices {
  /** Whether this block reports series of this service; `''` stands for series of no service. */
  shows(service: string): boolean;
  /** Whether the agent watches this role. */
  watches(service: string): boolean;
}

/** The series that a scrape selects. */
interface Selection {
  /** The key, which is equal for equal selections. */
  readonly key: string;
  readonly takes: GatherRequest['takes'];
  /** The role whose state decides the status code. */
  readonly role?: string;
}

/**
 * The selection of a query (docs/http-api.md): everything; with `?service=<role>` the series that the role sent; with
 * `?service=agent` all other series, so that each series is in exactly one selection. Undefined for any other value.
 */
export function selectionOf(
  query: URLSearchParams,
  { shows, watches }: ReportedServices,
): Selection | undefined {
  const [service, ...more] = query.getAll('service');
  if (service === undefined) return { key: 'all', takes: (series) => shows(series.service) };
  if (more.length > 0) return undefined;
  if (service === 'agent') {
    const takes: Selection['takes'] = (series) =>
      shows(series.service) && !(series.relayed && watches(series.service));
    return { key: 'rest', takes };
  }
  if (!watches(service) || !shows(service)) return undefined;
  const takes: Selection['takes'] = (series) => series.relayed && series.service === service;
  return { key: `role ${service}`, takes, role: service };
}
