import { createGzip } from 'node:zlib';
import type { View } from '../../core/model.ts';
import type { Drops, Gather, GatherRequest, Log } from '../../core/ports.ts';
import type { Body, Reply } from '../listen/http.ts';
import { contentTypes, type Format, type Renderer } from './exposition.ts';

/** One scrape that waits for its page. */
export interface Scrape {
  readonly format: Format;
  readonly gzip: boolean;
  readonly reply: Reply;
}

export interface RoundsDeps {
  gather: Gather;
  renderer: Renderer;
  log: Log;
  drops: Drops;
  /** Whether the role's last scrape or health check failed; asked after the gather. */
  roleDown(role: string): boolean;
  /** What all pages vary by. */
  vary: string;
}

/** Scrapes that share a gather. */
interface Round {
  readonly selection: Selection;
  /** Monotonic; Infinity if the scraper does not send its timeout. */
  readonly deadlineMs: number;
  readonly scrapes: Scrape[];
}

export interface Rounds {
  /** Answers a scrape, in a round that is still open or in the next; `deadlineMs` is as in `GatherRequest`. */
  join(selection: Selection, deadlineMs: number, scrape: Scrape): void;
}

/** Pages whose readers have not taken them whole; the memory they may hold together. */
const pagesUnderWay = 16;

/** What a role that is down answers, so that `up` of its scrape job means the role. */
export const roleDownText = (role: string): string =>
  `Role ${role} is down: its last scrape or health check failed.\n`;

/** One sink over the replies to all these scrapes, their heads sent. */
function openSink(scrapes: readonly Scrape[], format: Format, vary: string): Sink {
  const opened = (gzip: boolean): Sink[] => {
    const encoding = gzip ? { 'content-encoding': 'gzip' } : {};
    const headers = { 'content-type': contentTypes[format], vary, ...encoding };
    return scrapes.filter((scrape) => scrape.gzip === gzip).map(({ reply }) => reply.open(200, headers));
  };
  const zipped = opened(true);
  return together([...opened(false), ...(zipped.length > 0 ? [gzipped(together(zipped))] : [])]);
}

/** Writes pieces until they end or nobody reads any more; breaks the answers off if a piece cannot be made. */
async function pour(pieces: AsyncIterable<Buffer>, sink: Sink): Promise<void> {
  try {
    for await (const piece of pieces) {
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

/** Keeps count of pages under way; cuts off the readers of the oldest, and counts it, when there are too many. */
function createDelivery(drops: Drops): (sink: Sink) => void {
  let underWay: Sink[] = [];
  return (sink) => {
    underWay = underWay.filter(({ done }) => !done);
    if (underWay.length >= pagesUnderWay) {
      drops.count('pull', 'slow_reader');
      underWay.shift()?.cut();
    }
    underWay.push(sink);
  };
}

/** Shows a view to all scrapes of a round that still wait: one rendering for each format. */
function createShow(deps: RoundsDeps): (view: View, round: Round) => Promise<void> {
  const deliver = createDelivery(deps.drops);

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
      await pour(deps.renderer.render(view, format), sink);
    }
  };
}

/**
 * Answers scrapes in rounds: those that ask for the same, and came before the picture was frozen, share one
 * gather, one rendering for each format and one compression. A view is held only while it is rendered, never
 * for a reader. Readers of the oldest page are cut off, and counted, when too many pages are under way.
 */
export function createRounds(deps: RoundsDeps): Rounds {
  const open = new Map<string, Round>();
  const show = createShow(deps);

  const run = async (round: Round): Promise<void> => {
    const { selection, deadlineMs } = round;
    const frozen = (): void => {
      if (open.get(selection.key) === round) open.delete(selection.key);
    };
    try {
      const view = await deps.gather({ takes: selection.takes, deadlineMs, frozen });
      frozen();
      await show(view, round).finally(() => view.release());
    } catch (thrown) {
      frozen();
      deps.log.write('error', 'scrape failed', { error: thrown });
      for (const { reply } of round.scrapes) {
        if (!reply.begun) reply.send(500, 'Internal error.\n');
      }
    }
  };

  return {
    join(selection, deadlineMs, scrape) {
      const current = open.get(selection.key);
      // A round that may wait longer than this scraper would answer it too late.
      if (current && current.deadlineMs <= deadlineMs) return void current.scrapes.push(scrape);
      const round = { selection, deadlineMs, scrapes: [scrape] };
      open.set(selection.key, round);
      // One turn later, so that what arrived together is answered together even if the freeze is immediate.
      setImmediate(() => void run(round));
    },
  };
}

/** Where pieces of a page go: one body, or many as one. */
export type Sink = Body;

/** One sink for several; done when all are. */
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
 * Compresses into `sink`, off the event loop. Level 1: on exposition text the default takes three times as
 * long to save a few percent of the page's size (bench/render.ts).
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

/** Which services a block reports, and which of them are watched roles. */
export interface Shown {
  /** Whether series of this service (`''`: of none) are reported here. */
  shows(service: string): boolean;
  /** Whether this is a role that the agent watches. */
  watches(service: string): boolean;
}

/** What one scrape asks for. */
export interface Selection {
  /** Equal for scrapes that ask for the same. */
  readonly key: string;
  readonly takes: GatherRequest['takes'];
  /** The role whose state decides the answer's status. */
  readonly role?: string;
}

/**
 * What a scrape's query selects (CONTRACT, HTTP): everything; with `?service=<role>` what this role sent itself;
 * with `?service=agent` the rest, so that no series is in two and none in neither. Undefined for any other value.
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
