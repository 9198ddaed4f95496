import { errorText, systemCode } from '../../../core/errors.ts';
import type { StoreFailureReason } from '../../../core/reasons.ts';
import { connectionFault } from '../../probe-error.ts';
import type { StoreFault } from '../store.ts';

/** The other end speaks, but not PostgreSQL's protocol. */
export class ProtocolFailure extends Error {
  constructor(msg: string, cause?: unknown) {
    super(msg, cause === undefined ? undefined : { cause });
    this.name = 'ProtocolFailure';
  }
}

/** By SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html). */
const reasons: Readonly<Record<string, StoreFailureReason>> = {
  '28000': 'credentials',
  '28P01': 'credentials',
  '3D000': 'database_missing',
  '53300': 'too_many_connections',
  '57P01': 'shutting_down',
  '57P02': 'shutting_down',
  // Also said while it starts up.
  '57P03': 'shutting_down',
  '57014': 'too_slow',
  '42501': 'denied',
  '08P01': 'protocol',
};

/** The SQLSTATE of what was thrown, if the server sent it; the driver's own errors have none. */
export function sqlStateOf(thrown: unknown): string | undefined {
  const code = systemCode(thrown);
  const sent = (thrown as { severity?: unknown } | null | undefined)?.severity !== undefined;
  return sent && code !== undefined && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * Whether the session is at its end, or its time: not a fault of the one statement. By the code, for the word that
 * says how severe it is comes in the server's language.
 */
export function endsSession(thrown: unknown): boolean {
  const state = sqlStateOf(thrown);
  return state === undefined || /^(?:08|57|25P0[34])/.test(state);
}

/** The driver says these in words only. */
const spoken: readonly (readonly [RegExp, StoreFailureReason])[] = [
  [/^SASL/, 'credentials'],
  [/^Connection terminated/, 'reset'],
  [/^received invalid response|^Received unexpected/, 'protocol'],
];

/** What the driver, the server or the network threw, in the agent's words. */
export function faultOf(thrown: unknown): StoreFault {
  const msg = errorText(thrown);
  if (thrown instanceof ProtocolFailure) return { reason: 'protocol', msg };
  const state = sqlStateOf(thrown);
  if (state !== undefined) return { reason: reasons[state] ?? 'query_failed', msg: `${msg} (${state})` };
  if ((thrown as { name?: unknown } | null | undefined)?.name === 'AbortError')
    return { reason: 'too_slow', msg: 'it did not answer in time' };
  const word = spoken.find(([pattern]) => pattern.test(msg));
  return word === undefined ? connectionFault(thrown) : { reason: word[1], msg };
}
