import { errorText, systemCode } from '../../../core/errors.ts';
import { networkFault } from '../../../core/network-fault.ts';
import type { HostedFailureReason } from '../../../core/reasons.ts';

/** Why there was no answer. */
export class HostedFailure extends Error {
  readonly reason: HostedFailureReason;

  constructor(reason: HostedFailureReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'HostedFailure';
    this.reason = reason;
  }
}

/** What was thrown on the way to an answer, as a failure. */
export function failureOf(thrown: unknown): HostedFailure {
  if (thrown instanceof HostedFailure) return thrown;
  const text = errorText(thrown) || (systemCode(thrown) ?? '');
  return new HostedFailure(networkFault(thrown) ?? 'failed', text, thrown);
}
