import { networkFault, systemCode } from '../../core/errors.ts';
import type { Clock, Drops, Log } from '../../core/ports.ts';
import type { DropReason, ScrapeFailureReason } from '../../core/reasons.ts';
import { shownUrl } from '../../core/redacted.ts';
import { excerpt } from '../../core/text-formats.ts';
import { closedByServer, networkText, tlsFaultText } from '../../core/tls-faults.ts';
import type { Page } from './exposition/line-table.ts';
import type { PageResult } from './series/page-series.ts';

/** Why a scrape failed; the message is for the log and the status page. */
export class ScrapeFailure extends Error {
  readonly reason: ScrapeFailureReason;

  constructor(reason: ScrapeFailureReason, what: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.name = 'ScrapeFailure';
    this.reason = reason;
  }
}

/** Reasons of `svc_agent_dropped_total{component="scrape"}`; other failures count as `failed`. */
const drops: Partial<Record<ScrapeFailureReason, DropReason>> = {
  invalid_body: 'invalid_body',
  too_large: 'too_large',
  too_many_samples: 'too_many_samples',
  label_too_long: 'label_too_long',
  too_slow: 'too_slow',
};

export const dropOf = (reason: ScrapeFailureReason): DropReason => drops[reason] ?? 'failed';

/** Classifies an error of the request. A connection that is reset within the body cuts the page off. */
export function failureOf(thrown: unknown, inBody: boolean): ScrapeFailure {
  if (thrown instanceof ScrapeFailure) return thrown;
  const reason = networkFault(thrown) ?? 'failed';
  const text = tlsFaultText(thrown) ?? excerpt(networkText(thrown) || (systemCode(thrown) ?? ''));
  return new ScrapeFailure(inBody && reason === 'reset' ? 'cut_off' : reason, text, thrown);
}

const mostOfLine = 120;
const mostOfMessage = 200;

/**
 * A failure without the secrets of the request. An error page of the target, or the location to which the target redirects, may
 * repeat them.
 */
export function shownFailure(failure: ScrapeFailure, redact: (text: string) => string): ScrapeFailure {
  const text = redact(failure.message);
  const what = text.length > mostOfMessage ? `${text.slice(0, mostOfMessage)}…` : text;
  return new ScrapeFailure(failure.reason, what, failure.cause);
}

/** The state of a target, for the status page. */
export interface ScrapeStatus {
  url: string;
  up: boolean;
  /** Wall clock, ms; undefined before the first accepted page. */
  lastTakenMs: number | undefined;
  lastFailure: { reason: ScrapeFailureReason; what: string; atMs: number } | undefined;
  /** When the first scrape failed after the last accepted page, wall clock, ms; undefined if the last scrape succeeded. */
  failingSinceMs: number | undefined;
  /** Failures by reason since the start. */
  failures: Partial<Record<ScrapeFailureReason, number>>;
  /** The last accepted page. */
  page:
    | { series: number; samples: number; bytes: number; invalidLines: number; durationMs: number }
    | undefined;
  firstInvalid: Page['firstInvalid'];
  vocabulary: string | undefined;
}

/** Counts the results of scrapes and logs when they change. */
interface ScrapeStatusRecorder {
  succeeded(page: Page, result: PageResult, durationMs: number): void;
  /** Notes a failed scrape. `isCounted`: the missed deadline of this scrape was counted before. */
  failed(failure: ScrapeFailure, isCounted: boolean): void;
  current(vocabulary: string | undefined): ScrapeStatus;
}

interface ScrapeStatusDeps {
  url: string;
  /** Removes the secrets of the request from a text of the target. */
  redact(text: string): string;
  drops: Drops;
  log: Log;
  clock: Clock;
}

export function createScrapeStatus({
  url,
  redact,
  drops,
  log,
  clock,
}: ScrapeStatusDeps): ScrapeStatusRecorder {
  const target = shownUrl(url);
  const isSecure = target.startsWith('https:');
  const failures: ScrapeStatus['failures'] = {};
  let up: boolean | undefined;
  let lastTakenMs: number | undefined;
  let lastFailure: ScrapeStatus['lastFailure'];
  let failingSinceMs: number | undefined;
  let lastPage: ScrapeStatus['page'];
  let firstInvalid: Page['firstInvalid'];

  return {
    succeeded(page, { series, refusedLines }, durationMs) {
      const invalidLines = page.invalidLines + refusedLines;
      const first = page.firstInvalid;
      firstInvalid = first && { ...first, text: redact(first.text).slice(0, mostOfLine) };
      const { samples, bytes } = page;
      if (invalidLines > 0) drops.count('scrape', 'invalid_line', invalidLines);
      if (invalidLines > 0 && (lastPage?.invalidLines ?? 0) === 0) {
        log.write('warn', 'skipping invalid lines of the page', {
          target,
          lines: invalidLines,
          first: firstInvalid,
        });
      }
      if (up === false) log.write('info', 'the target is up again', { target });
      up = true;
      lastTakenMs = clock.nowMs();
      failingSinceMs = undefined;
      lastPage = { series, samples, bytes, invalidLines, durationMs };
    },
    failed({ reason, message, cause }, isCounted) {
      const what = isSecure && reason === 'reset' ? closedByServer(message) : message;
      if (!isCounted) {
        drops.count('scrape', dropOf(reason));
        failures[reason] = (failures[reason] ?? 0) + 1;
      }
      if (up !== false || lastFailure?.reason !== reason) {
        log.write('warn', 'scrape failed', { target, reason, what, error: cause });
      }
      up = false;
      lastFailure = { reason, what, atMs: clock.nowMs() };
      failingSinceMs ??= lastFailure.atMs;
    },
    current: (vocabulary) => ({
      url: target,
      up: up === true,
      lastTakenMs,
      lastFailure,
      failingSinceMs,
      failures: { ...failures },
      page: lastPage,
      firstInvalid,
      vocabulary,
    }),
  };
}
