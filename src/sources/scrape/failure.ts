import { errorText, networkFault, systemCode } from '../../core/errors.ts';
import type { DropReason, ScrapeFailureReason } from '../../core/reasons.ts';

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
  const text = errorText(thrown) || (systemCode(thrown) ?? '');
  return new ScrapeFailure(inBody && reason === 'reset' ? 'cut_off' : reason, text, thrown);
}
