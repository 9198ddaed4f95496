import type { HealthFailureReason } from '../../core/reasons.ts';
import type { Phase } from '../connection/connect.ts';
import { connectionFault, ProbeError } from '../probe-error.ts';

/** Why a role is not well, or does not say so. */
export interface HealthFault {
  reason: HealthFailureReason;
  /** A sentence for people. */
  msg: string;
}

const hung: Readonly<Partial<Record<Phase, HealthFault>>> = {
  first_byte: { reason: 'first_byte_timeout', msg: 'connected, but not a byte of an answer came in time' },
  body: { reason: 'body_timeout', msg: 'the answer began, but was not whole in time' },
};

/** What was thrown in a step of a look; once its time is over, the step is the reason. */
export function healthFault(thrown: unknown, phase: Phase, signal: AbortSignal): HealthFault {
  const { reason, msg } =
    thrown instanceof ProbeError ? { reason: thrown.reason, msg: thrown.message } : connectionFault(thrown);
  // What is broken off in the end is broken off by us; an answer that came just in time still counts.
  const isOurs = !(thrown instanceof ProbeError) || reason === 'reset';
  return (signal.aborted && isOurs && hung[phase]) || { reason, msg };
}
