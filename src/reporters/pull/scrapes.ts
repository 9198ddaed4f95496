import { createGzip } from 'node:zlib';
import type { View } from '../../core/model.ts';
import type { Drops, Gather, GatherRequest, Log } from '../../core/ports.ts';
import type { Body, Reply } from '../listen/http.ts';
import { contentTypes, type Format, type Renderer } from './exposition.ts';

/** A scrape that waits for its page. */
export interface Scrape {
  readonly format: Format;
  readonly gzip: boolean;
  readonly reply: Reply;
}

export interface ScrapesDeps {
  gather: Gather;
  renderer: Renderer;
  log: Log;
  drops: Drops;
  /** Whether the role's last scrape or health check failed; asked after the gather. */
  roleDown(role: string): boolean;
  /** Value of `Vary`. */
  vary: string;
}

/** Scrapes that share a gather. */
interface ScrapeGroup {
  readonly selection: Selection;
  /** Monotonic; Infinity if the scraper does not send its timeout. */
  readonly deadlineMs: number;
  readonly scrapes: Scrape[];
}

export interface Scrapes {
  /** Answers a scrape, with a group that is still open, or with the next one; `deadlineMs` is as in `GatherRequest`. */
  join(selection: Selection, deadlineMs: number, scrape: Scrape): void;
}

/** Limit of pages that clients have not read completely, which bounds memory. */
const pagesInProgress = 16;

/** Body for a role that is down. With status 503, `up` of its scrape job reflects the role. */
export const roleDownText = (role: string): string =>
  `Role ${role} is down: its last scrape or health check failed.\n`;

/** Sends the headers of all these scrapes and returns one sink for their bodies. */
function openSink(scrapes: readonly Scrape[], format: Format, vary: string): Sink {
  const opened = (gzip: boolean): Sink[] => {
    const encoding = gzip ? { 'content-encoding': 'gzip' } : {};
    const headers = { 'content-type': contentTypes[format], vary, ...encoding };
    return scrapes.filter((scrape) => scrape.gzip === gzip).map(({ reply }) => reply.open(200, headers));
  };
  const zipped = opened(true);
  return together([...opened(false), ...(zipped.length > 0 ? [gzipped(together(zipped))] : [])]);
}

/**
 * The memory of pages that all clients have read, for the next page. Allocated anew for each page, it would be outside
 * of the heap and yet drive V8's garbage collector: a page of 100,000 series cost a collection of the whole heap.
 */
function createPageMemory() {
  let pages: { readonly sink: Sink; readonly pieces: ArrayBuffer[] }[] = [];
  return {
    /** What is free; what the next page does not take is given up. */
    spare(): ArrayBuffer[] {
      const free = pages.filter(({ sink }) => sink.done).flatMap(({ pieces }) => pieces);
      pages = pages.filter(({ sink }) => !sink.done);
      return free;
    },
    /** Where to put the memory of each piece that is written to `sink`. */
    of(sink: Sink): ArrayBuffer[] {
      const pieces: ArrayBuffer[] = [];
      pages.push({ sink, pieces });
      return pieces;
    },
  };
}

/** Writes pieces until the end, or until all clients are gone; aborts the responses if rendering fails. */
async function pour(pieces: AsyncIterable<Buffer>, sink: Sink, used: ArrayBuffer[]): Promise<void> {
  try {
    for await (const piece of pieces) {
      used.push(piece.buffer as ArrayBuffer);
      if (sink.done) break;
      sink.write(piece);
    }
  } catch (thrown) {
    sink.cut();
    throw thrown;
  }
  if (sink.done) sink.cut();
  else sink.end();
}

/** Limits the pages in progress: beyond the limit the clients of the oldest are disconnected and counted. */
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
function createShow(deps: ScrapesDeps): (view: View, group: ScrapeGroup) => Promise<void> {
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
      await pour(deps.renderer.render(view, format, memory.spare()), sink, memory.of(sink));
    }
  };
}

/**
 * Answers scrapes in groups: those with the same selection that arrive before the view is frozen share one gather,
 * one rendering per format and one compression. A view is held only while it is rendered, not while clients read.
 * When too many pages are in progress, the clients of the oldest are disconnected and counted.
 */
export function createScrapes(deps: ScrapesDeps): Scrapes {
  const open = new Map<string, ScrapeGroup>();
  const show = createShow(deps);

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
      // One turn later, so that scrapes that arrive together share a group even if the freeze is immediate.
      setImmediate(() => void run(group));
    },
  };
}

/** Receives the pieces of a page: one response body, or several. */
export type Sink = Body;

/** Combines several sinks; done when all are. */
export function together(sinks: readonly Sink[]): Sink {
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
 * Compresses into `sink`, outside the event loop. Level 1, because the default takes three times as long on
 * exposition text and saves a few percent of its size (bench/render.ts).
 */
export function gzipped(sink: Sink): Sink {
  const gzip = createGzip({ level: 1, chunkSize: 65_536 });
  gzip.on('data', (piece: Buffer) => sink.write(piece));
  gzip.on('end', () => sink.end());
  gzip.on('error', () => sink.cut());
  return {
    write: (piece) => void gzip.write(piece),
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
export interface Shown {
  /** Whether series of this service (`''`: of no service) are reported by this block. */
  shows(service: string): boolean;
  /** Whether the agent watches this role. */
  watches(service: string): boolean;
}

/** The series that a scrape selects. */
export interface Selection {
  /** Equal for equal selections. */
  readonly key: string;
  readonly takes: GatherRequest['takes'];
  /** The role whose state decides the status code. */
  readonly role?: string;
}

/**
 * The selection of a query (CONTRACT, HTTP): everything; with `?service=<role>` the series that the role sent; with
 * `?service=agent` all others, so that each series is in exactly one of them. Undefined for any other value.
 */
export function selectionOf(query: URLSearchParams, { shows, watches }: Shown): Selection | undefined {
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
