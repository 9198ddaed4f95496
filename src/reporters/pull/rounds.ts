import type { View } from '../../core/model.ts';
import type { Drops, Gather, Log } from '../../core/ports.ts';
import { contentTypes, type Format } from './format.ts';
import type { Reply } from './reply.ts';
import type { Selection } from './selection.ts';
import { gzipped, type Sink, together } from './sink.ts';
import type { Renderer } from './text.ts';

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
  /** Monotonic; Infinity without one. */
  readonly deadlineMs: number;
  readonly scrapes: Scrape[];
}

export interface Rounds {
  /** Answers a scrape, in a round that is still open or in the next; `deadlineMs` is Infinity without one. */
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
      const deadline = deadlineMs === Infinity ? {} : { deadlineMs };
      const view = await deps.gather({ takes: selection.takes, ...deadline, frozen });
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
