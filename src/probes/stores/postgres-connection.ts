import { once } from 'node:events';
import type { Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';
import pg from 'pg';
import type { ClientTls } from '../../core/access.ts';
import { errorText, systemCode } from '../../core/errors.ts';
import type { StoreFailureReason } from '../../core/reasons.ts';
import {
  connectTo,
  earliestEndMs,
  handshakeFault,
  peerCertificateFault,
  type Trace,
  tlsOptions,
} from '../connection.ts';
import { connectionFault, nothingCame, ProbeError } from '../probe.ts';
import { createProtocolGuard } from './postgres-protocol-guard.ts';
import { usualStoreUser } from './store-options.ts';
import type { StoreFault, StoreTarget } from './store-report.ts';

export type PostgresRow = Readonly<Record<string, unknown>>;

/** Rows, or the reason why there are none: too few rights, a missing table or function. */
export type PostgresAnswer =
  | { rows: readonly PostgresRow[]; unknown?: undefined }
  | { rows?: undefined; unknown: string; sqlState?: string };

export interface Statement {
  sql: string;
  /**
   * Whether the statement comes from the configuration: then it must be a single statement, and its columns are named `0`, `1`, …
   */
  isConfigured?: boolean;
}

/** A login to one database. */
export interface PostgresSession {
  readonly tlsNotAfterMs?: number;
  /** The process of the session on the server; missing if a pooler does not tell it. */
  readonly processId?: number;
  /**
   * The answers to all statements in one round trip, within one read-only transaction. Throws only if the session or its time
   * ends.
   */
  ask(statements: readonly Statement[]): Promise<{ answers: readonly PostgresAnswer[]; roundTripMs: number }>;
  close(): Promise<void>;
}

const usualDatabase = 'postgres';
/** How long a poll waits for a lock at most; the next poll tries again. */
const longestLockWaitMs = 1000;

/** Logs in. The socket is destroyed when the signal aborts. */
export async function openSession(
  target: StoreTarget,
  database: string | undefined,
  trace: Trace,
  signal: AbortSignal,
): Promise<PostgresSession> {
  const socket = await openSocket(target, trace, signal);
  const guard = createProtocolGuard();
  /** Why the connection broke between two statements; the next statement only reports that it broke. */
  let broken: unknown;
  const reasonFor = (thrown: unknown) => (sqlStateOf(thrown) === undefined ? (broken ?? thrown) : thrown);
  const client = clientOver(forDriver(socket, guard.inspect), target, database);
  client.on('error', (thrown) => {
    broken ??= thrown;
  });
  trace.enter('first_byte');
  try {
    await client.connect();
  } catch (thrown) {
    socket.destroy();
    // A program that waits for the end of a line never answers a login.
    if (signal.aborted && socket.bytesRead === 0) throw new ProbeError('too_slow', nothingCame, thrown);
    throw reasonFor(thrown);
  } finally {
    trace.end();
  }
  return {
    tlsNotAfterMs: trace.tlsNotAfterMs,
    processId: (client as unknown as { processID: number | null }).processID ?? undefined,
    async ask(statements) {
      guard.reset();
      // The statements leave in one write: the driver would make one system call for each.
      socket.cork();
      process.nextTick(() => socket.uncork());
      try {
        return await askAll(client, statements, target.timeoutMs);
      } catch (thrown) {
        socket.destroy();
        throw reasonFor(thrown);
      }
    },
    async close() {
      await client.end().catch(() => {});
      socket.destroy();
    },
  };
}

function clientOver(
  socket: Socket,
  { address, user, password }: StoreTarget,
  database: string | undefined,
): pg.Client {
  return new pg.Client({
    stream: () => socket,
    // TLS is already established; without this the driver would read it from the environment.
    ssl: false,
    host: address.host,
    port: address.port,
    user: user ?? usualStoreUser,
    // The password is a function: otherwise the driver would read the environment and the home directory.
    password: () => password ?? '',
    database: database ?? usualDatabase,
    application_name: 'svc-agent',
    // All statements of a poll are sent together and take one round trip.
    pipeline: true,
  });
}

/**
 * Sends everything at once, as a transaction whose settings are local, so that nothing remains in a connection that a pooler
 * passes on. A failing statement would make all later ones fail, so each statement first returns to the savepoint.
 */
async function askAll(client: pg.Client, statements: readonly Statement[], timeoutMs: number) {
  const startedMs = performance.now();
  const limitMs = Math.ceil(Math.min(timeoutMs, 2 ** 31 - 1));
  const begun = client
    .query(
      `BEGIN READ ONLY; SET LOCAL statement_timeout = ${limitMs};` +
        ` SET LOCAL lock_timeout = ${longestLockWaitMs};` +
        ` SET LOCAL idle_in_transaction_session_timeout = ${limitMs}; SAVEPOINT question`,
    )
    .then(() => performance.now() - startedMs);
  const asked = statements.map(({ sql, isConfigured }) =>
    isConfigured ? askConfigured(client, sql) : askOwn(client, sql),
  );
  // A pooler closes its own connection if a client leaves in the middle of a transaction.
  const committed = client.query('COMMIT');
  const settled = await Promise.allSettled([begun, ...asked, committed]);
  const [roundTripMs, ...answers] = settled.map((result, index) => {
    if (result.status === 'fulfilled') return result.value;
    const isAnswer = index > 0 && index <= statements.length && !endsSession(result.reason);
    if (!isAnswer) throw result.reason;
    const sqlState = sqlStateOf(result.reason);
    return { unknown: `${errorText(result.reason)} (${sqlState})`, sqlState };
  });
  return { answers: answers.slice(0, -1) as PostgresAnswer[], roundTripMs: roundTripMs as number };
}

const toSavepoint = 'ROLLBACK TO SAVEPOINT question';

async function askOwn(client: pg.Client, sql: string): Promise<PostgresAnswer> {
  const results = await client.query(`${toSavepoint}; ${sql}`);
  // The result has one part for each of the two statements, which the driver's types do not declare.
  return { rows: (results as unknown as { rows: PostgresRow[] }[])[1]!.rows };
}

/** Sends a configured statement by the extended protocol, which accepts only a single statement, however the text is written. */
async function askConfigured(client: pg.Client, sql: string): Promise<PostgresAnswer> {
  const query = { text: sql, queryMode: 'extended', rowMode: 'array' } as pg.QueryArrayConfig;
  const [returned, asked] = await Promise.allSettled([client.query(toSavepoint), client.query(query)]);
  if (returned.status === 'rejected') throw returned.reason;
  if (asked.status === 'rejected') throw asked.reason;
  return { rows: asked.value.rows.map((row) => ({ ...row })) };
}

/** The request to switch to TLS: its length and its code (PostgreSQL, Message Formats, SSLRequest). */
const tlsRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);

/**
 * A connection on which nothing was exchanged yet but TLS. The agent opens it instead of the driver, so that it is dialled,
 * verified and ended like the connection of every other probe.
 */
async function openSocket({ address, tls }: StoreTarget, trace: Trace, signal: AbortSignal): Promise<Socket> {
  const { socket } = await connectTo(address, { trace }, signal);
  if (tls === undefined) return socket;
  trace.enter('tls');
  try {
    return await switchToTls(socket, address.host, tls, trace, signal);
  } catch (thrown) {
    socket.destroy();
    throw tlsFault(thrown, signal);
  } finally {
    trace.end();
  }
}

function tlsFault(thrown: unknown, signal: AbortSignal): ProbeError {
  if (thrown instanceof ProbeError) return thrown;
  if (signal.aborted) return new ProbeError('tls', 'the TLS handshake was not finished in time', thrown);
  const { reason, msg } = connectionFault(thrown);
  return handshakeFault(thrown) ?? new ProbeError(reason === 'failed' ? 'tls' : reason, msg, thrown);
}

async function switchToTls(raw: Socket, host: string, tls: ClientTls, trace: Trace, signal: AbortSignal) {
  const options = await tlsOptions(host, tls);
  const answer = await answerTo(tlsRequest, raw, signal);
  // More than the one byte before TLS would be read as a message of the server: CVE-2021-23222.
  if (answer.toString('latin1') !== 'S')
    throw new ProbeError(
      'tls',
      'the server does not offer TLS; set ssl = on there, or remove tls from the store',
    );
  const socket = tlsConnect({ ...options, socket: raw });
  socket.on('error', () => {});
  addAbortSignal(signal, socket);
  await once(socket, 'secureConnect');
  trace.tlsNotAfterMs = earliestEndMs(socket);
  const fault = tls.insecure === true ? undefined : peerCertificateFault(socket);
  if (fault !== undefined) throw fault;
  return socket;
}

async function answerTo(request: Buffer, socket: Socket, signal: AbortSignal): Promise<Buffer> {
  const onEnd = () => socket.destroy(new ProbeError('reset', 'the server closed the connection before TLS'));
  socket.once('end', onEnd);
  try {
    socket.write(request);
    const [answer] = (await once(socket, 'data', { signal })) as [Buffer];
    return answer;
  } finally {
    socket.off('end', onEnd);
  }
}

/**
 * Prepares an open connection for the driver, which connects by itself and throws from an event handler if it cannot read
 * something. In this case, and if the bytes are not PostgreSQL's, the connection is destroyed.
 */
function forDriver(socket: Socket, inspect: (chunk: Buffer) => void): Socket {
  const emit = socket.emit.bind(socket) as (event: string | symbol, ...args: unknown[]) => boolean;
  socket.connect = () => {
    process.nextTick(() => emit('connect'));
    return socket;
  };
  socket.emit = (event: string | symbol, ...args: unknown[]) => {
    if (event !== 'data') return emit(event, ...args);
    try {
      inspect(args[0] as Buffer);
      return emit(event, ...args);
    } catch (thrown) {
      socket.destroy(new ProbeError('protocol', errorText(thrown), thrown));
      return true;
    }
  };
  return socket;
}

/** The reasons by SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html). */
const reasons: Readonly<Record<string, StoreFailureReason>> = {
  '28000': 'credentials',
  '28P01': 'credentials',
  '3D000': 'database_missing',
  '53300': 'too_many_connections',
  '57P01': 'shutting_down',
  '57P02': 'shutting_down',
  // The server starts, recovers after a crash, or shuts down.
  '57P03': 'starting',
  '57014': 'too_slow',
  '42501': 'denied',
  '08P01': 'protocol',
};

/** The SQLSTATE of a thrown error, if the server sent the error; the driver's own errors have none. */
function sqlStateOf(thrown: unknown): string | undefined {
  const code = systemCode(thrown);
  const isSent = (thrown as { severity?: unknown } | null | undefined)?.severity !== undefined;
  return isSent && code !== undefined && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/**
 * Whether the session or its time is over, as opposed to a single failed statement. The code decides, because the severity is in
 * the server's language.
 */
function endsSession(thrown: unknown): boolean {
  const state = sqlStateOf(thrown);
  return state === undefined || /^(?:08|57|25P0[34])/.test(state);
}

/** Errors that the driver reports only as text, some of them with a message in its place. */
const driverMessages: readonly (readonly [RegExp, StoreFailureReason, msg?: string])[] = [
  [/^SASL/, 'credentials'],
  [/^Connection terminated/, 'reset', 'the server closed the connection'],
  [/^received invalid response|^Received unexpected/, 'protocol'],
];

/** Matches the error of a pg_hba.conf that allows the user only over TLS. */
const wantsTls = /no pg_hba\.conf entry .*(?:no encryption|SSL off)/;

/**
 * The server's function that refuses a role that has as many connections as its own limit allows. Others can still connect. The
 * text of the error is in the server's language.
 */
const accountCheck = 'InitializeSessionUserId';

/** The reason and the message for what the driver, the server or the network threw. */
export function postgresFault(thrown: unknown): StoreFault {
  if (thrown instanceof ProbeError) return connectionFault(thrown);
  const msg = errorText(thrown);
  const state = sqlStateOf(thrown);
  if (state !== undefined) {
    if (state === '57P03' && /shutting down/.test(msg))
      return { reason: 'shutting_down', msg: `${msg} (${state})` };
    if (state === '53300' && (thrown as { routine?: unknown }).routine === accountCheck)
      return { reason: 'denied', msg: `${msg} (${state})` };
    const hint = wantsTls.test(msg) ? '; if the server wants TLS, add tls: {} to the store' : '';
    return { reason: reasons[state] ?? 'query_failed', msg: `${msg} (${state})${hint}` };
  }
  if ((thrown as { name?: unknown } | null | undefined)?.name === 'AbortError')
    return { reason: 'too_slow', msg: 'no answer in time' };
  const [, reason, better = msg] = driverMessages.find(([pattern]) => pattern.test(msg)) ?? [];
  return reason === undefined ? connectionFault(thrown) : { reason, msg: better };
}
