import { errorText, networkFault, systemCode } from '../../../core/errors.ts';
import { ScrapeFailure } from '../failure.ts';

/** What was thrown on the way to a page, as a failure. A connection lost within a body has cut the page off. */
export function failureOf(thrown: unknown, inBody: boolean): ScrapeFailure {
  if (thrown instanceof ScrapeFailure) return thrown;
  const reason = networkFault(thrown) ?? 'failed';
  const text = errorText(thrown) || (systemCode(thrown) ?? '');
  return new ScrapeFailure(inBody && reason === 'reset' ? 'cut_off' : reason, text, thrown);
}
