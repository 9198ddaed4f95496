import { type EventEmitter, errorMonitor } from 'node:events';
import type { Socket } from 'node:net';
import type Driver from 'cassandra-driver/lib/connection.js';
import { formatAddress } from '../../core/address.ts';
import { errorText, networkFault } from '../../core/errors.ts';
import type { StoreFailureReason } from '../../core/reasons.ts';
import { connectTo, type Trace } from '../connection.ts';
import { beginningOf, connectionFault, nothingCame, ProbeError } from '../probe.ts';
import type { StoreFault, StoreTarget } from './store-report.ts';

export type CassandraRow = Readonly<Record<string, unknown>>;

/** One connection to one node. */
export interface CqlConnection {
  /** Earliest expiry of the certificates in the chain, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** The rows of one statement, read from one node. `withinMs` limits this statement alone. Throws what the driver throws. */
  query(cql: string, withinMs?: number): Promise<readonly CassandraRow[]>;
  /** Settles once the socket is closed. */
  close(): Promise<void>;
}

/** A protocol version that every server since Cassandra 2.2 supports. */
const protocolVersion = 4;
const localOne = 0x000a;

async function load() {
  const [connection, requests, executionOptions, clientOptions] = await Promise.all([
    import('cassandra-driver/lib/connection.js'),
    import('cassandra-driver/lib/requests.js'),
    import('cassandra-driver/lib/execution-options.js'),
    import('cassandra-driver/lib/client-options.js'),
  ]);
  return {
    Connection: connection.default,
    QueryRequest: requests.default.QueryRequest,
    ExecutionOptions: executionOptions.default.ExecutionOptions,
    extend: clientOptions.default.extend,
  };
}

/** The options of the driver. It gets no timers of its own: only the signal ends a poll. */
function driverOptions({ address, user, password }: StoreTarget): object {
  return {
    contactPoints: [formatAddress(address)],
    applicationName: 'svc-agent',
    socketOptions: { readTimeout: 0, connectTimeout: 0 },
    pooling: { heartBeatInterval: 0 },
    ...(user !== undefined && { credentials: { username: user, password: password ?? '' } }),
  };
}

/** Lets the driver use an open socket; an error in its streams would end the process. */
function bindDriver(connection: Driver, socket: Socket, { fail }: ConnectionEnd): void {
  connection.netClient = socket;
  connection.bindSocketListeners();
  for (const stream of [connection.protocol, connection.parser])
    stream.on('error', (error: unknown) => {
      fail(new ProbeError('protocol', 'the answer is not CQL', error));
      socket.destroy();
    });
}

function close(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) return resolve();
    socket.once('close', () => resolve());
    socket.destroySoon();
  });
}

/** The error with a message of the agent, if no user is configured, or if the error is neither the driver's nor the socket's. */
function explained(error: Error, { user }: StoreTarget): Error {
  if (user === undefined && error.name === 'AuthenticationError')
    return new ProbeError(
      'credentials',
      'the server requires a user and a password; none are configured',
      error,
    );
  if ('info' in error || networkFault(error) !== undefined) return error;
  return new ProbeError('protocol', `the answer is not CQL: ${error.message}`, error);
}

/** Connects and logs in. When the signal aborts, the socket is destroyed and every pending statement rejects. */
export async function connect(
  target: StoreTarget,
  trace: Trace,
  signal: AbortSignal,
): Promise<CqlConnection> {
  const { Connection, QueryRequest, ExecutionOptions, extend } = await load();
  const options = extend(driverOptions(target));
  const connection = new Connection(formatAddress(target.address), protocolVersion, options);
  const { socket, tlsNotAfterMs } = await connectTo(target.address, { tls: target.tls, trace }, signal);
  const end = watchSocket(socket, signal);
  const { broken } = end;
  bindDriver(connection, socket, end);
  const ready = new Promise<void>((resolve, reject) => {
    connection.startup((error) => (error ? reject(explained(error, target)) : resolve()));
  });
  trace.enter('first_byte');
  try {
    await Promise.race([broken, ready]);
  } catch (error) {
    await close(socket);
    throw error;
  } finally {
    trace.end();
  }
  return {
    tlsNotAfterMs,
    query(cql, withinMs) {
      end.resetBytes();
      const asked = Object.assign(ExecutionOptions.empty(), {
        getConsistency: () => localOne,
        getReadTimeout: () => withinMs,
      });
      const rows = new Promise<readonly CassandraRow[]>((resolve, reject) => {
        connection.sendStream(new QueryRequest(cql, null, asked), asked, (error, result) =>
          error ? reject(explained(error, target)) : resolve(result?.rows ?? []),
        );
      });
      return Promise.race([broken, rows]);
    },
    close: () => close(socket),
  };
}

const firstByteOfAnswers = 0x80;
const newestProtocol = 6;
/** The size limit of all answers that are pending at the same time; the clients of a busy node take a few hundred KB. */
const maxBytes = 16 * 1024 * 1024;

const closed = 'the server closed the connection, which it also does when it has too many';

/** The end of a connection, whatever its cause. */
interface ConnectionEnd {
  /** Never resolves; rejects with the cause. */
  readonly broken: Promise<never>;
  /** Sets the cause; the first call counts. */
  fail(error: unknown): void;
  /** Resets the number of bytes of answers. */
  resetBytes(): void;
}

/** Ends the wait if the server closes the connection during the login; the driver would wait forever. */
function watchEnd(socket: Socket, signal: AbortSignal, fail: ConnectionEnd['fail']): void {
  let error: unknown;
  const late = (): void => {
    const msg = socket.bytesRead === 0 ? nothingCame : 'no answer in time';
    fail(new ProbeError('too_slow', msg, signal.reason));
  };
  if (signal.aborted) late();
  signal.addEventListener('abort', late, { once: true });
  (socket as EventEmitter).on(errorMonitor, (thrown: unknown) => {
    error = thrown;
  });
  socket.once('close', () => {
    signal.removeEventListener('abort', late);
    fail(error ?? new ProbeError('reset', closed));
  });
}

/** Limits the size of frames: the driver reads any bytes as a frame, and may wait for gigabytes that the first bytes announce. */
function watchBytes(socket: Socket, refuse: (msg: string) => void): () => void {
  let bytes = 0;
  let isFirst = true;
  socket.on('data', (chunk: Buffer) => {
    const version = (chunk[0] ?? 0) - firstByteOfAnswers;
    if (isFirst && (version < 1 || version > newestProtocol))
      refuse(`the answer is not CQL: ${beginningOf(chunk)}`);
    isFirst = false;
    bytes += chunk.length;
    if (bytes > maxBytes) refuse(`the answers have more than ${maxBytes} bytes`);
  });
  return () => {
    bytes = 0;
  };
}

/** Watches an open socket. A socket that receives something other than CQL is destroyed. */
function watchSocket(socket: Socket, signal: AbortSignal): ConnectionEnd {
  let fail: (error: unknown) => void = () => {};
  const broken = new Promise<never>((_, reject) => {
    fail = reject;
  });
  // Usually no query waits at that moment.
  broken.catch(() => {});
  watchEnd(socket, signal, fail);
  const resetBytes = watchBytes(socket, (msg) => {
    fail(new ProbeError('protocol', msg));
    socket.destroy();
  });
  return { broken, fail, resetBytes };
}

/** The codes of the protocol's ERROR message (native_protocol_v4.spec, section 9). */
export const cqlErrors = {
  protocol: 0x000a,
  badCredentials: 0x0100,
  syntax: 0x2000,
  unauthorized: 0x2100,
  invalid: 0x2200,
} as const;

const reasons = new Map<number, StoreFailureReason>([
  [cqlErrors.protocol, 'protocol'],
  [cqlErrors.badCredentials, 'credentials'],
  [cqlErrors.unauthorized, 'denied'],
]);

/** The code of an error that the server sent; undefined for any other error. */
export function errorCode(thrown: unknown): number | undefined {
  const code = (thrown as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'number' ? code : undefined;
}

/** The fields of the driver's errors; `innerError` is the socket's error. */
interface DriverError {
  name?: unknown;
  isSocketError?: unknown;
  innerError?: unknown;
}

/** Matches the message for nodes with the users that do not answer; the server reports this as a failed login. */
const usersUnavailable = /cannot achieve consistency level|unable to perform authentication|unavailable/i;

/** The reason and the message for what the driver, the server or the network threw. */
export function cassandraFault(thrown: unknown): StoreFault {
  if (thrown instanceof ProbeError)
    return { reason: thrown.reason as StoreFailureReason, msg: thrown.message };
  const { name, isSocketError, innerError } = (thrown ?? {}) as DriverError;
  if (innerError !== undefined) return cassandraFault(innerError);
  const msg = errorText(thrown);
  if (name === 'AuthenticationError')
    return usersUnavailable.test(msg)
      ? { reason: 'query_failed', msg: `the nodes that hold system_auth do not answer: ${msg}` }
      : { reason: 'credentials', msg };
  if (name === 'OperationTimedOutError' || name === 'AbortError' || name === 'TimeoutError')
    return { reason: 'too_slow', msg };
  if (isSocketError === true) return { reason: 'reset', msg };
  const code = errorCode(thrown);
  if (code !== undefined) return { reason: reasons.get(code) ?? 'query_failed', msg };
  return connectionFault(thrown);
}
