import { authorizationOf, type ClientAuth, type ClientTls, type ReadSecret } from '../../core/access.ts';
import type { Address } from '../../core/address.ts';
import { createRedaction } from '../../core/known-secrets.ts';
import type { Clock, Tracing } from '../../core/ports.ts';
import type { HealthFailureReason } from '../../core/reasons.ts';
import { urlSecrets } from '../../core/redacted.ts';
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
import { type HttpReply, responseOver } from './http-response.ts';

/** Why a health check failed. */
interface HealthFault {
  reason: HealthFailureReason;
  /** A sentence for people. */
  msg: string;
}

const hung: Readonly<Partial<Record<ConnectionPhase, HealthFault>>> = {
  first_byte: { reason: 'first_byte_timeout', msg: 'connected, but no byte of the response arrived in time' },
  body: { reason: 'body_timeout', msg: 'the response began, but did not end in time' },
};

/** The fault behind an error. After the timeout, the phase in which time ran out is the reason. */
function faultFrom(thrown: unknown, phase: ConnectionPhase, signal: AbortSignal): HealthFault {
  const { reason, msg } =
    thrown instanceof ProbeError ? { reason: thrown.reason, msg: thrown.message } : connectionFault(thrown);
  // After the timeout the agent itself resets the connection; a response that arrived just in time still counts.
  const isOurs = !(thrown instanceof ProbeError) || reason === 'reset';
  return (signal.aborted && isOurs && hung[phase]) || { reason, msg };
}

/** A role's health response (spec, Health response). */
export interface HealthAnswer {
  ok: boolean;
  msg: string;
}

/** Reasons by words in the message, the most specific first: a role that shuts down has left the ring, too. */
const reasonPatterns: readonly (readonly [HealthFailureReason, RegExp])[] = [
  ['shutting_down', /\b(shutting ?down|shut ?down|stopping|draining|terminating)\b/],
  ['persistence', /\b(persistence|data ?store|database)\b/],
  ['not_in_ring', /\b(hash ?ring|ring|membership|not (yet )?a member)\b/],
  ['warming_up', /\b(warming ?up|warm ?up|starting|not (yet )?started|initiali[sz]ing)\b/],
];

/** The words of a message: `WarmingUp`, `warming_up` and `Warming up` are the same words. */
const wordsOf = (msg: string): string =>
  msg
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[^A-Za-z0-9]+/g, ' ')
    .toLowerCase();

/** The reason that a message states, or else `not_ok`. */
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
 * Parses a response from JSON; undefined for any other text. Writers of proto3 JSON leave out what is false, and call `msg`
 * `message`: a map with only a message means `ok: false`.
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
  const reply = [msg, message].find(isText);
  if (typeof ok === 'boolean') return { ok, msg: reply ?? '' };
  const isBare = ok === undefined && reply !== undefined && Object.keys(rest).length === 0;
  return isBare ? { ok: false, msg: reply } : undefined;
}

export interface HealthDeps {
  clock: Pick<Clock, 'monotonicMs'>;
  readSecret: ReadSecret;
  tracing?: Pick<Tracing, 'headers'>;
  /** The name resolution. Default: the system's. */
  lookup?: Lookup;
}

/** Where to connect, and how. */
export interface Dial {
  address: Address;
  /** The TLS options. TLS is used if this is set, even to an empty map. */
  tls?: ClientTls;
  protocols?: ConnectOptions['protocols'];
  auth?: ClientAuth;
}

/** An open connection and the headers for requests over it. */
export interface OpenConnection extends Connection {
  trace: Trace;
  /** Headers with the credentials and the trace, if there are any. */
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
  // This is checked here, because Node's own error message would contain the value.
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
 * Connects, runs `ask` over the connection and closes it. Whatever is thrown becomes a finding, with the phases up to then; in
 * that case what an earlier check remembered stays.
 */
export async function checkOver(
  { address, tls, protocols, auth }: Dial,
  { clock, readSecret, tracing, lookup }: HealthDeps,
  signal: AbortSignal,
  ask: (connection: OpenConnection) => Promise<HealthVerdict>,
  recalled?: unknown,
): Promise<Finding> {
  const trace = createTrace(clock);
  let connection: Connection | undefined;
  try {
    const credentials = { ...tracing?.headers(), ...(await credentialsOf(auth, readSecret)) };
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

/** The text of a GET. Throws ProbeError for a header that would change the request. */
function requestOf(url: URL, credentials: OpenConnection['credentials']): string {
  const given = { accept: 'application/json', 'user-agent': 'svc-agent', ...credentials };
  const headers = Object.entries({ host: url.host, connection: 'close', ...given });
  const wrong = headers.find(([, value]) => !/^[\t\x20-\x7e]*$/.test(value));
  if (wrong) throw new ProbeError('failed', `the header ${wrong[0]} has a character that is not allowed`);
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/**
 * One GET over an open connection, which is not used again. Phase `first_byte` ends with the first byte of the
 * response, `body` with the last. Throws ProbeError for more than 64 KiB and for a response that is not HTTP; errors of
 * the connection are thrown as they are.
 */
async function getOver({ socket, trace, credentials }: OpenConnection, url: URL): Promise<HttpReply> {
  const asked = requestOf(url, credentials);
  trace.enter('first_byte');
  try {
    return await responseOver(socket, asked, () => trace.enter('body'));
  } finally {
    trace.end();
  }
}

const excerptLength = 80;

const isGood = (status: number): boolean => status >= 200 && status < 300;

/** The fault in a response that does not have the spec's shape. */
function shapeFault({ status, contentType, location, body }: HttpReply): HealthFault {
  if (location !== undefined && status >= 300 && status < 400) {
    return { reason: 'http_status', msg: `status ${status}: redirects are not followed` };
  }
  const shown = `${excerpt(contentType) || 'no content type'}, ${JSON.stringify(excerpt(body, excerptLength))}`;
  return isGood(status)
    ? { reason: 'invalid_answer', msg: `not a JSON object with ok and msg: ${shown}` }
    : { reason: 'http_status', msg: `status ${status}: ${shown}` };
}

/** The text for a status of 401 or 403. `isSent`: the check sent credentials. */
export const refusalText = (status: number, isSent: boolean): string =>
  isSent
    ? `status ${status}: the endpoint refuses the credentials of the health check (auth below health)`
    : `status ${status}: the endpoint asks for credentials, and the health check has none (auth below health)`;

/**
 * The fault in a response. The spec does not define the status for a failing role: `ok: false` counts with any status, `ok: true`
 * only with 2xx, because load balancers and orchestrators use the status.
 */
function faultIn(
  reply: HttpReply,
  answer: HealthAnswer | undefined,
  isSent: boolean,
): HealthFault | undefined {
  const { status } = reply;
  if (status === 401 || status === 403) {
    return { reason: 'credentials', msg: refusalText(status, isSent) };
  }
  if (answer === undefined) return shapeFault(reply);
  if (answer.ok && !isGood(status)) {
    return { reason: 'http_status', msg: `status ${status}, although it says ok: ${excerpt(answer.msg)}` };
  }
  return faultOf(answer);
}

export function verdictOf(
  reply: HttpReply,
  hasCredentials = false,
  redact = (text: string) => text,
): HealthVerdict {
  // Only texts are redacted: a value of the query, such as `true`, may be part of the JSON.
  const said = answerIn(reply.body);
  const answer = said && { ...said, msg: redact(said.msg) };
  return {
    fault: faultIn({ ...reply, body: redact(reply.body) }, answer, hasCredentials),
    msg: excerpt(answer?.msg ?? '') || 'ok',
    details: { protocol: 'http', httpStatus: reply.status },
  };
}

/** Checks a role by the spec's `GET /health`. Redirects are not followed. */
export function checkHttp(
  { dial, url }: { dial: Dial; url: URL },
  deps: HealthDeps,
  signal: AbortSignal,
): Promise<Finding> {
  const { auth } = dial;
  // Error pages often repeat the path, and some the headers.
  const { readSecret, redact } = createRedaction({ parts: urlSecrets(url.href), auth }, deps.readSecret);
  return checkOver(dial, { ...deps, readSecret }, signal, async (connection) =>
    verdictOf(await getOver(connection, url), auth !== undefined, redact),
  );
}
