import { authorizationOf, type ClientAuth, type ClientTls, type ReadSecret } from '../../core/access.ts';
import type { Address } from '../../core/address.ts';
import type { Clock } from '../../core/ports.ts';
import type { HealthFailureReason } from '../../core/reasons.ts';
import {
  type Connection,
  type ConnectionPhase,
  type ConnectOptions,
  connectTo,
  createTrace,
  type Lookup,
  type Trace,
} from '../connection.ts';
import { connectionFault, excerpt, type Finding, ProbeError } from '../probe.ts';

/** Why a health check failed. */
export interface HealthFault {
  reason: HealthFailureReason;
  /** A sentence for people. */
  msg: string;
}

const hung: Readonly<Partial<Record<ConnectionPhase, HealthFault>>> = {
  first_byte: { reason: 'first_byte_timeout', msg: 'connected, but no byte of the response arrived in time' },
  body: { reason: 'body_timeout', msg: 'the response began, but did not end in time' },
};

/** The fault behind an error; after the timeout, the phase in which time ran out is the reason. */
export function faultFrom(thrown: unknown, phase: ConnectionPhase, signal: AbortSignal): HealthFault {
  const { reason, msg } =
    thrown instanceof ProbeError ? { reason: thrown.reason, msg: thrown.message } : connectionFault(thrown);
  // After the timeout a reset is our own doing; a response that arrived just in time still counts.
  const isOurs = !(thrown instanceof ProbeError) || reason === 'reset';
  return (signal.aborted && isOurs && hung[phase]) || { reason, msg };
}

/** A role's health response (spec, Health response). */
export interface HealthAnswer {
  ok: boolean;
  msg: string;
}

/** Reasons by words of the message, the most specific first: a role that shuts down has left the ring too. */
const reasonPatterns: readonly (readonly [HealthFailureReason, RegExp])[] = [
  ['shutting_down', /\b(shutting ?down|shut ?down|stopping|draining|terminating)\b/],
  ['persistence', /\b(persistence|data ?store|database)\b/],
  ['not_in_ring', /\b(hash ?ring|ring|membership|not (yet )?a member)\b/],
  ['warming_up', /\b(warming ?up|warm ?up|starting|not (yet )?started|initiali[sz]ing)\b/],
];

/** `WarmingUp`, `warming_up` and `Warming up` are the same words. */
const wordsOf = (msg: string): string =>
  msg
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[^A-Za-z0-9]+/g, ' ')
    .toLowerCase();

/** The reason that a message gives, else `not_ok`. */
export function reasonOf(msg: string): HealthFailureReason {
  const words = wordsOf(msg);
  return reasonPatterns.find(([, pattern]) => pattern.test(words))?.[0] ?? 'not_ok';
}

/** The fault that a response reports; undefined for a healthy role. */
export function faultOf({ ok, msg }: HealthAnswer): HealthFault | undefined {
  if (ok) return undefined;
  return { reason: reasonOf(msg), msg: excerpt(msg) || 'not ok, without a message' };
}

const isText = (value: unknown): value is string => typeof value === 'string';

/**
 * The response in a JSON text; undefined for any other text. Writers of proto3 JSON leave out what is false, and call
 * `msg` `message`: a map with nothing but a message is `ok: false`.
 */
export function answerIn(text: string): HealthAnswer | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { ok, msg, message, ...rest } = value as Record<string, unknown>;
  const said = [msg, message].find(isText);
  if (typeof ok === 'boolean') return { ok, msg: said ?? '' };
  const isBare = ok === undefined && said !== undefined && Object.keys(rest).length === 0;
  return isBare ? { ok: false, msg: said } : undefined;
}

export interface HealthDeps {
  clock: Pick<Clock, 'monotonicMs'>;
  readSecret: ReadSecret;
  /** Default: the system's name resolution. */
  lookup?: Lookup;
}

/** Where to connect, and how. */
export interface Dial {
  address: Address;
  /** TLS is used if this is set, even to an empty map. */
  tls?: ClientTls;
  protocols?: ConnectOptions['protocols'];
  auth?: ClientAuth;
}

/** An open connection and the headers for requests over it. */
export interface OpenConnection extends Connection {
  trace: Trace;
  /** Headers with the credentials, if there are any. */
  credentials: Readonly<Record<string, string>>;
}

/** The result of a check over an open connection. */
export interface HealthVerdict {
  /** Undefined for a healthy role. */
  fault?: HealthFault;
  /** The message for a healthy role. */
  msg: string;
  details?: Readonly<Record<string, unknown>>;
  remember?: unknown;
}

async function credentialsOf(
  auth: ClientAuth | undefined,
  readSecret: ReadSecret,
): Promise<Record<string, string>> {
  const authorization = await authorizationOf(auth, readSecret).catch((error: unknown) => {
    throw new ProbeError('credentials', 'the credentials of the health check cannot be read', error);
  });
  if (authorization === undefined) return {};
  // Checked here, because Node's own error message would contain the value.
  if (!/^[\x20-\x7e]*$/.test(authorization)) {
    throw new ProbeError(
      'credentials',
      'the credentials contain a character that is not allowed in a header',
    );
  }
  return { authorization };
}

function finding(verdict: HealthVerdict, trace: Trace, connection: Connection | undefined): Finding {
  const { fault, msg, details, remember } = verdict;
  const { phasesMs, dialled, tlsNotAfterMs } = trace;
  return {
    reason: fault?.reason,
    msg: fault?.msg ?? msg,
    phasesMs,
    tlsNotAfterMs,
    details: { address: dialled, tlsVersion: connection?.tlsVersion, ...details },
    remember,
  };
}

/**
 * Connects, runs `ask` over the connection and closes it. Whatever is thrown becomes a finding, with the phases up to
 * then; what an earlier check remembered stays.
 */
export async function checkOver(
  { address, tls, protocols, auth }: Dial,
  { clock, readSecret, lookup }: HealthDeps,
  signal: AbortSignal,
  ask: (connection: OpenConnection) => Promise<HealthVerdict>,
  recalled?: unknown,
): Promise<Finding> {
  const trace = createTrace(clock);
  let connection: Connection | undefined;
  try {
    const credentials = await credentialsOf(auth, readSecret);
    connection = await connectTo(address, { tls, protocols, lookup, trace }, signal);
    return finding(await ask({ ...connection, trace, credentials }), trace, connection);
  } catch (error) {
    trace.end();
    const fault = faultFrom(error, trace.phase, signal);
    return finding({ fault, msg: fault.msg, remember: recalled }, trace, connection);
  } finally {
    connection?.socket.destroy();
  }
}

/** Checks that the address accepts connections and, with TLS, completes the handshake. Sends no data. */
export function checkTcp(dial: Dial, deps: HealthDeps, signal: AbortSignal): Promise<Finding> {
  const verdict = { msg: 'accepts connections', details: { protocol: 'tcp' } };
  return checkOver(dial, deps, signal, () => Promise.resolve(verdict));
}
