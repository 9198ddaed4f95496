import type { HostedFailureReason } from '../../../core/reasons.ts';
import type { Verdict } from '../batch.ts';

function reasonOf(status: number): HostedFailureReason {
  if (status === 429) return 'throttled';
  if (status >= 500) return 'server_error';
  return status >= 300 && status < 400 ? 'redirect' : 'rejected';
}

/**
 * What an answer that is no success means where the protocol has nothing special to say. Redirects are not
 * followed (they would carry credentials elsewhere) and say nothing about the batch: it waits until the
 * configuration or the receiver is put right.
 */
export function verdictOfFailure(status: number, isRetried: boolean, points: number): Verdict {
  const reason = reasonOf(status);
  return isRetried || reason === 'redirect'
    ? { kind: 'again', reason }
    : { kind: 'refused', reason, lost: points };
}
