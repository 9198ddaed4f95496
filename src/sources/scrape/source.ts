import { errorText } from '../../core/errors.ts';
import { createRedaction } from '../../core/known-secrets.ts';
import type { Gauge } from '../../core/model.ts';
import type { Drops, Log, Readings, Source } from '../../core/ports.ts';
import type { ScrapeFailureReason } from '../../core/reasons.ts';
import { urlSecrets } from '../../core/redacted.ts';
import { createRefusedLines } from '../../core/registry/refused-series.ts';
import { createSlice } from '../../core/slices.ts';
import type { MappedMetric } from '../../core/vocabulary.ts';
import type { VocabularyDetector } from '../../core/vocabulary-detector.ts';
import type { ScrapeOptions } from './block.ts';
import type { LineMemory } from './exposition/line-memory.ts';
import { createLineTable, type Page } from './exposition/line-table.ts';
import { createPageReader, type PageReader } from './exposition/page-reader.ts';
import { createFetch, type FetchDeps } from './fetch.ts';
import {
  createScrapeStatus,
  dropOf,
  ScrapeFailure,
  type ScrapeStatus,
  shownFailure,
} from './scrape-status.ts';
import {
  createPageSeries,
  type PageIntake,
  type PageResult,
  type PageVisibility,
} from './series/page-series.ts';

export interface ScrapeDeps extends FetchDeps {
  intake: PageIntake;
  /** The values behind `intake`. */
  show: PageVisibility;
  /** `svc_role_scrape_up` of the role. */
  up: Gauge;
  drops: Drops;
  log: Log;
  /** Detects the vocabulary of the target, which `intake` uses for translation. */
  detector: VocabularyDetector;
  /** The memory for lines, which all targets share. Default: no limit. */
  lineMemory?: LineMemory;
  /** Called for each accepted page with the number of counters that were on the last page, too, and how many of them fell. */
  onPage(evidence: { fallen: number; counters: number }): void;
}

export type ScrapeResult = { ok: true } | { ok: false; reason: ScrapeFailureReason; what: string };

/**
 * Scrapes one role's metrics page. A page is accepted completely or discarded. While the target does not answer,
 * none of its series is shown. Pages are fetched on request and otherwise every `intervalMs`, one at a time.
 */
export interface Scrape extends Source, Readings {
  /**
   * Resolves with a page that is younger than a second, or else with the next page. A page that misses the monotonic `deadlineMs`
   * is a failure: the target's series are hidden until the late page arrives. Never rejects.
   */
  scrapeNow(deadlineMs?: number): Promise<ScrapeResult>;
  status(): ScrapeStatus;
  /** Every metric of the target, with its names in the catalog. */
  mapped(): MappedMetric[];
}

const sharedMs = 1000;
/** After this time the series of a target that is down no longer count against the limits. */
const forgottenMs = 10 * 60_000;

export function createScrape(options: ScrapeOptions, deps: ScrapeDeps): Scrape {
  const { clock, drops, detector, up, log, ownListeners, mark } = deps;
  const { url, auth } = options;
  const { readSecret, redact } = createRedaction({ parts: urlSecrets(url), auth }, deps.readSecret);
  const fetch = createFetch(options, { clock, readSecret, ownListeners, mark });
  const status = createScrapeStatus({ url, redact, drops, log, clock });
  const target = createTargetSeries(options, deps);
  let running: Promise<ScrapeResult> | undefined;
  let cancelTimer = (): void => {};
  let isStopped = false;
  /** Whether the page that is being fetched missed its deadline. */
  let isLate = false;

  const run = async (): Promise<ScrapeResult> => {
    const startMs = clock.monotonicMs();
    isLate = false;
    armTimer();
    try {
      const { wholeBody } = await fetch.page(target.reader);
      const { page, result } = await target.accept(wholeBody, () => !isStopped);
      status.succeeded(page, result, clock.monotonicMs() - startMs);
      return { ok: true };
    } catch (error) {
      target.discard();
      const thrown =
        error instanceof ScrapeFailure ? error : new ScrapeFailure('failed', errorText(error), error);
      const failure = shownFailure(thrown, redact);
      if (!isStopped) {
        target.hide();
        status.failed(failure, isLate);
        await target.forgetIfGone();
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
    cancelTimer = clock.after(options.intervalMs, () => {
      if (running === undefined) void start();
      else {
        drops.count('scrape', dropOf('too_slow'));
        armTimer();
      }
    });
  };

  /** Hides the target's series from a response for which its page is late. */
  const missed = (): ScrapeResult => {
    const failure = new ScrapeFailure('too_slow', 'the page did not come before the deadline of the scrape');
    if (!isLate) {
      isLate = true;
      target.hide();
      status.failed(failure, false);
    }
    return { ok: false, reason: failure.reason, what: failure.message };
  };

  const scrapeNow = (deadlineMs?: number): Promise<ScrapeResult> => {
    if (isStopped) return Promise.resolve({ ok: false, reason: 'failed', what: 'the source is stopped' });
    if (clock.monotonicMs() - target.takenMs < sharedMs) return Promise.resolve({ ok: true });
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
      up.set(0);
      void start();
      return Promise.resolve(async () => {
        isStopped = true;
        cancelTimer();
        await fetch.close();
        await running;
        await target.close();
      });
    },
    scrapeNow,
    status: () => status.current(detector.vocabulary?.name),
    mapped: target.mapped,
    values: target.values,
  };
}

/** The series of the target: what its pages say, and whether they are shown. */
interface TargetSeries extends Readings, Pick<Scrape, 'mapped'> {
  readonly reader: PageReader;
  /** The monotonic time at which the page that is shown was accepted; -Infinity while the series are hidden. */
  readonly takenMs: number;
  /**
   * Ends the page in `reader` and takes its values, which are shown only if the source still runs (`isShown`). Throws
   * `ScrapeFailure` for an invalid body.
   */
  accept(wholeBody: boolean, isShown: () => boolean): Promise<{ page: Page; result: PageResult }>;
  /** Discards the page in `reader`. */
  discard(): void;
  hide(): void;
  /** Closes the series of a target that has been down for long, so that they do not count against the limits. */
  forgetIfGone(): Promise<void>;
  close(): Promise<void>;
}

function createTargetSeries(
  { limits }: ScrapeOptions,
  { intake, detector, show, up, onPage, clock, lineMemory }: ScrapeDeps,
): TargetSeries {
  const table = createLineTable();
  const memory = lineMemory?.open();
  const refusedLines = createRefusedLines(limits.samples);
  const reader = createPageReader(table, refusedLines, limits, memory);
  const slice = createSlice({ clock });
  const pageSeries = createPageSeries(table, { intake, refusedLines, detector, slice });
  let takenMs = Number.NEGATIVE_INFINITY;
  let goneSinceMs = Number.POSITIVE_INFINITY;

  const withdraw = (): Promise<void> => {
    slice.begin();
    return pageSeries.withdraw();
  };

  return {
    reader,
    get takenMs() {
      return takenMs;
    },
    async accept(wholeBody, isShown) {
      const page = reader.end(wholeBody);
      slice.begin();
      await pageSeries.arrange(page);
      const result = pageSeries.fill(page);
      pageSeries.endPage();
      reader.take(page);
      if (!isShown()) return { page, result };
      show.swap();
      up.set(1);
      goneSinceMs = Number.POSITIVE_INFINITY;
      takenMs = clock.monotonicMs();
      onPage({ fallen: result.fallen, counters: result.counters });
      return { page, result };
    },
    discard: () => reader.discard(),
    hide() {
      show.hide();
      up.set(0);
      takenMs = Number.NEGATIVE_INFINITY;
      goneSinceMs = Math.min(goneSinceMs, clock.monotonicMs());
    },
    async forgetIfGone() {
      if (clock.monotonicMs() - goneSinceMs >= forgottenMs) await withdraw();
    },
    async close() {
      show.hide();
      await withdraw();
      memory?.close();
      up.release();
    },
    mapped: () => pageSeries.mapped(),
    values: (family) => (takenMs === Number.NEGATIVE_INFINITY ? [] : pageSeries.values(family)),
  };
}
