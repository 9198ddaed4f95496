import type { Clock, Drops, Log } from '../../core/ports.ts';
import type { ScrapeFailureReason } from '../../core/reasons.ts';
import type { Page } from './exposition/page-reader.ts';
import { dropOf, type ScrapeFailure } from './failure.ts';
import type { Relayed } from './families/relay.ts';

/** How a target is doing, for the status page. */
export interface ScrapeStatus {
  url: string;
  up: boolean;
  /** Wall clock, ms. */
  lastTakenMs: number | undefined;
  lastFailure: { reason: ScrapeFailureReason; what: string; atMs: number } | undefined;
  /** Failures by reason since the start. */
  failures: Partial<Record<ScrapeFailureReason, number>>;
  /** Of the page taken last. */
  page:
    | { series: number; samples: number; bytes: number; invalidLines: number; durationMs: number }
    | undefined;
  firstInvalid: Page['firstInvalid'];
  vocabulary: string | undefined;
}

/** Counts what became of pages, and says so in the log when it changes. */
export interface Tally {
  taken(page: Page, relayed: Relayed, durationMs: number): void;
  /** A failure whose missed deadline is counted already (`isCounted`) is only remembered. */
  failed(failure: ScrapeFailure, isCounted: boolean): void;
  status(vocabulary: string | undefined): ScrapeStatus;
}

export interface TallyDeps {
  url: string;
  drops: Drops;
  log: Log;
  clock: Clock;
}

/** The URL without what may be a secret in it. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

export function createTally({ url, drops, log, clock }: TallyDeps): Tally {
  const target = shown(url);
  const failures: ScrapeStatus['failures'] = {};
  let up: boolean | undefined;
  let lastTakenMs: number | undefined;
  let lastFailure: ScrapeStatus['lastFailure'];
  let lastPage: ScrapeStatus['page'];
  let firstInvalid: Page['firstInvalid'];

  return {
    taken(page, { series, refusedLines }, durationMs) {
      const invalidLines = page.invalidLines + refusedLines;
      const { samples, bytes } = page;
      if (invalidLines > 0) drops.count('scrape', 'invalid_line', invalidLines);
      if (invalidLines > 0 && (lastPage?.invalidLines ?? 0) === 0) {
        log.write('warn', 'lines of a page are skipped', {
          target,
          lines: invalidLines,
          first: page.firstInvalid,
        });
      }
      if (up === false) log.write('info', 'the target answers again', { target });
      up = true;
      lastTakenMs = clock.nowMs();
      lastPage = { series, samples, bytes, invalidLines, durationMs };
      firstInvalid = page.firstInvalid;
    },
    failed({ reason, message, cause }, isCounted) {
      if (!isCounted) {
        drops.count('scrape', dropOf(reason));
        failures[reason] = (failures[reason] ?? 0) + 1;
      }
      if (up !== false || lastFailure?.reason !== reason) {
        log.write('warn', 'a page is not taken', { target, reason, what: message, error: cause });
      }
      up = false;
      lastFailure = { reason, what: message, atMs: clock.nowMs() };
    },
    status: (vocabulary) => ({
      url: target,
      up: up === true,
      lastTakenMs,
      lastFailure,
      failures: { ...failures },
      page: lastPage,
      firstInvalid,
      vocabulary,
    }),
  };
}
