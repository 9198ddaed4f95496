import { errorText } from '../../../core/errors.ts';
import type { StoreFailureReason } from '../../../core/reasons.ts';
import { connectionFault } from '../../probe-error.ts';
import type { StoreFault } from '../store.ts';

/** What the driver has no error for; the message is for people and holds no secret. */
export class CqlFailure extends Error {
  readonly reason: StoreFailureReason;

  constructor(reason: StoreFailureReason, msg: string, cause?: unknown) {
    super(msg, cause === undefined ? undefined : { cause });
    this.name = 'CqlFailure';
    this.reason = reason;
  }
}

/** Codes of the protocol's ERROR message (native_protocol_v4.spec, section 9). */
export const errorCodes = {
  protocol: 0x000a,
  badCredentials: 0x0100,
  syntax: 0x2000,
  unauthorized: 0x2100,
  invalid: 0x2200,
} as const;

const reasons = new Map<number, StoreFailureReason>([
  [errorCodes.protocol, 'protocol'],
  [errorCodes.badCredentials, 'credentials'],
  [errorCodes.unauthorized, 'denied'],
]);

/** The code of an error that the server sent; undefined for any other. */
export function errorCode(thrown: unknown): number | undefined {
  const code = (thrown as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'number' ? code : undefined;
}

/** What the driver's errors may carry; `innerError` is the socket's own. */
interface DriverError {
  name?: unknown;
  isSocketError?: unknown;
  innerError?: unknown;
}

/** What was thrown while a wide-column store was looked at, in the agent's words. */
export function faultOf(thrown: unknown): StoreFault {
  if (thrown instanceof CqlFailure) return { reason: thrown.reason, msg: thrown.message };
  const { name, isSocketError, innerError } = (thrown ?? {}) as DriverError;
  if (innerError !== undefined) return faultOf(innerError);
  const msg = errorText(thrown);
  if (name === 'AuthenticationError') return { reason: 'credentials', msg };
  if (name === 'OperationTimedOutError' || name === 'AbortError' || name === 'TimeoutError')
    return { reason: 'too_slow', msg };
  if (isSocketError === true) return { reason: 'reset', msg };
  const code = errorCode(thrown);
  if (code !== undefined) return { reason: reasons.get(code) ?? 'query_failed', msg };
  return connectionFault(thrown);
}

/** The same error without the secret, should a server have sent it back. */
export function withoutSecret(thrown: unknown, secret: string | undefined): unknown {
  if (secret && thrown instanceof Error && thrown.message.includes(secret))
    thrown.message = thrown.message.replaceAll(secret, '<redacted>');
  return thrown;
}
