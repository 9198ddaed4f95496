import { errorText } from '../../core/errors.ts';
import type { Gauge } from '../../core/model.ts';
import type { Drops, Log, Readings, Source } from '../../core/ports.ts';
import type { ScrapeFailureReason } from '../../core/reasons.ts';
import type { VocabularyDetector } from '../../core/vocabulary.ts';
import { createLineTable } from './exposition/line-table.ts';
import { createPageReader, type Page } from './exposition/page-reader.ts';
import { dropOf, ScrapeFailure } from './failure.ts';
import type { PageIntake, PageShow } from './families/intake.ts';
import { createRelay, type Relayed } from './families/relay.ts';
import { createFetch, type FetchDeps } from './fetch/fetch.ts';
import { type ScrapeOptions, scrapeDefaults } from './options.ts';
import { createTally, type ScrapeStatus } from './tally.ts';

export interface ScrapeDeps extends FetchDeps {
  intake: PageIntake;
  /** The numbers behind `intake`. */
  show: PageShow;
  /** `svc_role_scrape_up` of the role. */
  up: Gauge;
  drops: Drops;
  log: Log;
  /** The words of the target, by which `intake` translates. */
  words: VocabularyDetector;
  /** A page was taken: of so many counters that were on the page before, so many fell. */
  onPage?(evidence: { fallen: number; counters: number }): void;
}

export type ScrapeResult = { ok: true } | { ok: false; reason: ScrapeFailureReason; what: string };

/**
 * Relays one role's metrics page. A page is taken whole or not at all; of a target that does not answer nothing
 * is shown. Pages are fetched when asked for, and every `intervalMs` when nobody asks; never two at a time.
 */
export interface Scrape extends Source, Readings {
  /**
   * A page that is younger than a second, or the next. With a monotonic `deadlineMs`, what has not come by
   * then is a failure: nothing of the target is shown until the late page arrives. Never rejects.
   */
  scrapeNow(deadlineMs?: number): Promise<ScrapeResult>;
  status(): ScrapeStatus;
  /** Every metric of the target, with the names it has in the catalog's words. */
  names(): Map<string, Set<string>>;
}

const sharedMs = 1000;
const sliceMs = 2;
/** A target that is gone so long gives its places under the limits back. */
const forgottenMs = 10 * 60_000;

export function createScrape(options: ScrapeOptions, deps: ScrapeDeps): Scrape {
  const { clock, show, up, drops, log, onPage } = deps;
  const table = createLineTable();
  const reader = createPageReader(table, options.limits ?? scrapeDefaults.limits);
  const fetch = createFetch(options, deps);
  const tally = createTally({ url: options.url, drops, log, clock });
  let sliceStartMs = 0;
  const breathe = (): Promise<void> | undefined => {
    if (clock.monotonicMs() - sliceStartMs < sliceMs) return undefined;
    return new Promise((resolve) => {
      setImmediate(() => {
        sliceStartMs = clock.monotonicMs();
        resolve();
      });
    });
  };
  const relay = createRelay(table, { intake: deps.intake, words: deps.words, breathe });
  let running: Promise<ScrapeResult> | undefined;
  let cancelTimer = (): void => {};
  let isStopped = true;
  let takenMs = Number.NEGATIVE_INFINITY;
  let goneSinceMs: number | undefined;
  let isLate = false;

  const vanish = (): void => {
    show.hide();
    up.set(0);
    takenMs = Number.NEGATIVE_INFINITY;
    goneSinceMs ??= clock.monotonicMs();
  };

  const take = async (page: Page): Promise<Relayed> => {
    sliceStartMs = clock.monotonicMs();
    await relay.arrange(page);
    const relayed = relay.fill(page);
    reader.take(page);
    if (isStopped) return relayed;
    show.swap();
    up.set(1);
    goneSinceMs = undefined;
    takenMs = clock.monotonicMs();
    onPage?.({ fallen: relayed.fallen, counters: relayed.counters });
    return relayed;
  };

  const run = async (): Promise<ScrapeResult> => {
    const startMs = clock.monotonicMs();
    isLate = false;
    armTimer();
    try {
      const { wholeBody } = await fetch.page(reader);
      const page = reader.end(wholeBody);
      const relayed = await take(page);
      tally.taken(page, relayed, clock.monotonicMs() - startMs);
      return { ok: true };
    } catch (error) {
      reader.discard();
      const failure =
        error instanceof ScrapeFailure ? error : new ScrapeFailure('failed', errorText(error), error);
      if (!isStopped) {
        vanish();
        tally.failed(failure, isLate);
        if (clock.monotonicMs() - goneSinceMs! >= forgottenMs) relay.withdraw();
      }
      return { ok: false, reason: failure.reason, what: failure.message };
    } finally {
      running = undefined;
    }
  };

  const start = (): Promise<ScrapeResult> => {
    running ??= run();
    return running;
  };

  const armTimer = (): void => {
    cancelTimer();
    if (isStopped) return;
    cancelTimer = clock.after(options.intervalMs, () => {
      if (running === undefined) void start();
      else {
        drops.count('scrape', dropOf('too_slow'));
        armTimer();
      }
    });
  };

  /** Nothing of the target may stand in an answer that its page has missed. */
  const missed = (): ScrapeResult => {
    const failure = new ScrapeFailure('too_slow', 'the page did not come before the deadline of the scrape');
    if (running !== undefined && !isLate) {
      isLate = true;
      vanish();
      tally.failed(failure, false);
    }
    return { ok: false, reason: failure.reason, what: failure.message };
  };

  const scrapeNow = (deadlineMs?: number): Promise<ScrapeResult> => {
    if (isStopped) return Promise.resolve({ ok: false, reason: 'failed', what: 'the source is stopped' });
    if (clock.monotonicMs() - takenMs < sharedMs) return Promise.resolve({ ok: true });
    const page = start();
    if (deadlineMs === undefined) return page;
    return new Promise((resolve) => {
      const cancel = clock.after(Math.max(0, deadlineMs - clock.monotonicMs()), () => resolve(missed()));
      void page.then((result) => {
        cancel();
        resolve(result);
      });
    });
  };

  return {
    start() {
      isStopped = false;
      up.set(0);
      void start();
      return Promise.resolve(async () => {
        isStopped = true;
        cancelTimer();
        await fetch.close();
        await running;
        show.hide();
        relay.withdraw();
        up.release();
      });
    },
    scrapeNow,
    status: () => tally.status(deps.words.vocabulary?.name),
    names: () => relay.names(),
    look: (family) => (takenMs === Number.NEGATIVE_INFINITY ? [] : relay.look(family)),
  };
}
