import type { ArchiveFailureReason } from '../../core/reasons.ts';
import { connectionFault, ProbeError } from '../probe-error.ts';

/** What was thrown on the way to an answer, as a failure. */
export function failureOf(thrown: unknown): ProbeError<ArchiveFailureReason> {
  if (thrown instanceof ProbeError) return thrown;
  const { reason, msg } = connectionFault(thrown);
  if (thrown instanceof Error && thrown.name === 'HTTPParserError') {
    return new ProbeError('invalid_answer', `the answer is no HTTP: ${msg}`, thrown);
  }
  return new ProbeError(reason, msg.trim(), thrown);
}
