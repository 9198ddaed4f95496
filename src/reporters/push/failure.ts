import { systemCode } from '../../core/errors.ts';
import type { PushFailureReason } from '../../core/reasons.ts';

const reasons: Readonly<Record<string, PushFailureReason>> = {
  ECONNREFUSED: 'refused',
  EMSGSIZE: 'too_large',
  ENOBUFS: 'no_buffers',
  ENOMEM: 'no_buffers',
  EAGAIN: 'no_buffers',
  ENETUNREACH: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
};

/** Why a send failed, by its system code. */
export function sendFailure(thrown: unknown): PushFailureReason {
  return reasons[systemCode(thrown) ?? ''] ?? 'failed';
}
