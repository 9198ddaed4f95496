import type { ArchiveFailureReason } from '../../core/reasons.ts';
import { connectionFault } from '../connection/failure.ts';

/** Why an object store gave no answer that can be used. The message holds no secret. */
export class ObjectStoreFailure extends Error {
  readonly reason: ArchiveFailureReason;

  constructor(reason: ArchiveFailureReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ObjectStoreFailure';
    this.reason = reason;
  }
}

/** What was thrown on the way to an answer, as a failure. */
export function failureOf(thrown: unknown): ObjectStoreFailure {
  if (thrown instanceof ObjectStoreFailure) return thrown;
  const { reason, msg } = connectionFault(thrown);
  if (thrown instanceof Error && thrown.name === 'HTTPParserError') {
    return new ObjectStoreFailure('invalid_answer', `the answer is no HTTP: ${msg}`, thrown);
  }
  return new ObjectStoreFailure(reason, msg.trim(), thrown);
}
