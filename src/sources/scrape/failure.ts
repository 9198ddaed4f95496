import type { DropReason, ScrapeFailureReason } from '../../core/reasons.ts';

/** A page that is not taken, and why; `what` is for the log and the status page. */
export class ScrapeFailure extends Error {
  readonly reason: ScrapeFailureReason;

  constructor(reason: ScrapeFailureReason, what: string, cause?: unknown) {
    super(what, cause === undefined ? undefined : { cause });
    this.name = 'ScrapeFailure';
    this.reason = reason;
  }
}

/** What a failure counts as in `svc_agent_dropped_total{component="scrape"}`; `failed` unless named here. */
const drops: Partial<Record<ScrapeFailureReason, DropReason>> = {
  invalid_body: 'invalid_body',
  too_large: 'too_large',
  too_many_samples: 'too_many_samples',
  label_too_long: 'label_too_long',
  too_slow: 'too_slow',
};

export const dropOf = (reason: ScrapeFailureReason): DropReason => drops[reason] ?? 'failed';
