import { errorText, type NetworkFault, networkFault, systemCode } from '../../core/errors.ts';
import type { ArchiveFailureReason, HealthFailureReason, StoreFailureReason } from '../../core/reasons.ts';

/** What befalls a connection, whatever is spoken over it. */
export type ConnectionReason = HealthFailureReason & StoreFailureReason & ArchiveFailureReason;

/** Why there is no connection; the message is for people and holds no secret. */
export class ConnectionFailure extends Error {
  readonly reason: ConnectionReason;

  constructor(reason: ConnectionReason, msg: string, cause?: unknown) {
    super(msg, cause === undefined ? undefined : { cause });
    this.name = 'ConnectionFailure';
    this.reason = reason;
  }
}

/** What was thrown over a connection, as a reason and a sentence; `failed` for what is no fault of a network. */
export function connectionFault(thrown: unknown): { reason: ConnectionReason; msg: string } {
  const msg = errorText(thrown) || (systemCode(thrown) ?? 'failed without a word');
  if (thrown instanceof ConnectionFailure) return { reason: thrown.reason, msg };
  const fault: NetworkFault | undefined = networkFault(thrown);
  return { reason: fault ?? 'failed', msg };
}
