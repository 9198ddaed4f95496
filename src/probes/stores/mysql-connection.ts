import type { Socket } from 'node:net';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { Connection } from 'mysql2';
import { formatAddress } from '../../core/address.ts';
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
import { connectionFault, excerpt, ProbeError } from '../probe.ts';
import type { MysqlRefusal, MysqlRow, RunStatements } from './mysql-questions.ts';
import { usualStoreUser } from './store-options.ts';
import type { StoreFault, StoreTarget } from './store-report.ts';

interface MysqlSession {
  /** The version that the server announced before the login. */
  readonly announcedVersion: string;
  readonly tlsNotAfterMs?: number;
  /** The server's number of the session. */
  readonly id: number;
  /** Runs all statements in one round trip. */
  run: RunStatements;
  close(): Promise<void>;
}

/** The refusal in a thrown error, if the server sent the error; undefined for errors of the driver and the network. */
function refusalOf(thrown: unknown): MysqlRefusal | undefined {
  const { errno, sqlState, sqlMessage } = (thrown ?? {}) as Record<string, unknown>;
  if (typeof errno !== 'number' || typeof sqlMessage !== 'string') return undefined;
  return { errno, sqlState: typeof sqlState === 'string' ? sqlState : '', message: sqlMessage };
}

/** Properties of the driver's connection that its types lack. */
interface DriverConnection {
  /** The socket in use: after TLS has begun, this is another socket than the given one. */
  stream: Socket;
  packetParser: { execute(bytes: Buffer): void };
  startTLS(onSecure: (fault?: Error) => void): void;
}

/** The part of a query that the driver's types do not show: the results so far, and the index of the next result. */
interface DriverQuery {
  _rows: readonly unknown[];
  _resultIndex: number;
}

/** Runs all statements in one round trip. It also rejects if the connection ends otherwise than by the answer. */
function runOver(connection: Connection, end: Promise<never>): RunStatements {
  const run: RunStatements = (statements) =>
    new Promise((resolve, reject) => {
      if (statements.length === 0) return resolve({ results: [] });
      const rowsOf = ({ _rows }: DriverQuery, count: number) =>
        // A statement without rows has a summary as its result.
        Array.from({ length: count }, (_, index) =>
          Array.isArray(_rows[index]) ? (_rows[index] as MysqlRow[]) : [],
        );
      const query = connection.query(statements.join(';\n'), (thrown) => {
        const internal = query as unknown as DriverQuery;
        if (!thrown) return resolve({ results: rowsOf(internal, statements.length) });
        const refusal = refusalOf(thrown);
        if (refusal === undefined) return reject(thrown);
        resolve({ results: rowsOf(internal, internal._resultIndex), refusal: { ...refusal, thrown } });
      });
    });
  return (statements) => Promise.race([run(statements), end]);
}

/**
 * Makes the agent verify the certificate in the same way as every other probe, before the password is sent. By default the driver
 * compares the certificate of a server that is dialled by an IP address with the name `localhost`.
 */
function verifyTls(
  driver: DriverConnection,
  options: ConnectionOptions,
  isInsecure: boolean,
  trace: Trace,
): void {
  driver.startTLS = (onSecure) => {
    trace.enter('tls');
    const raw = driver.stream;
    raw.removeAllListeners('data');
    let isSecure = false;
    const secure: TLSSocket = tlsConnect({ ...options, socket: raw }, () => {
      isSecure = true;
      trace.tlsNotAfterMs = earliestEndMs(secure);
      trace.enter('first_byte');
      onSecure(isInsecure ? undefined : peerCertificateFault(secure));
    });
    secure.on('error', (error) => {
      // Before the end of the handshake the driver waits for a call; after it, the driver notices the end of its first socket.
      if (isSecure) raw.destroy(error);
      else onSecure(handshakeFault(error) ?? error);
    });
    secure.on('data', (bytes: Buffer) => driver.packetParser.execute(bytes));
    driver.stream = secure;
  };
}

interface Greeted {
  /** The socket on which the server has sent its greeting. */
  socket: Socket;
  trace: Trace;
  /** Called with the error that ends the connection between two statements. */
  onBroken(error: Error): void;
}

/**
 * Loads the driver and reads the TLS files before anything is opened: if a socket ended while the driver was not listening yet,
 * the driver would wait for ever.
 */
async function prepareLogin({ address, user, password, tls }: StoreTarget) {
  // The driver is CommonJS: bundled, it has only the default export.
  const { createConnection } = (await import('mysql2')).default;
  const options = tls && (await tlsOptions(address.host, tls));
  return ({ socket, trace, onBroken }: Greeted): Promise<Connection> =>
    new Promise((resolve, reject) => {
      const connection = createConnection({
        stream: () => socket,
        host: address.host,
        user: user ?? usualStoreUser,
        password,
        // This only requests TLS; the certificates are in `options`.
        ssl: tls && {},
        connectAttributes: { program_name: 'svc-agent' },
        // The server must not read the agent's files.
        flags: ['-LOCAL_FILES'],
        // All statements of a poll are sent together and take one round trip.
        multipleStatements: true,
        // There is no timeout here, because the signal ends the connection attempt.
        connectTimeout: 0,
        disableEval: true,
        typeCast: (field) => field.string('utf8'),
      });
      // Without a listener the driver throws the error into the process.
      connection.on('error', onBroken);
      if (options)
        verifyTls(connection as unknown as DriverConnection, options, tls?.insecure === true, trace);
      connection.connect((error) => {
        if (!error) return resolve(connection);
        reject(tls === undefined ? Object.assign(error, { withoutTls: true }) : error);
      });
    });
}

/** Ends the session, so that the server does not count an aborted client. */
async function endSession(connection: Connection): Promise<void> {
  const { stream } = connection as unknown as DriverConnection;
  if (stream.destroyed) return;
  connection.end(() => {});
  if (stream.closed) return;
  const closed = new Promise((resolve) => stream.once('close', resolve));
  stream.destroySoon();
  await closed;
}

/** Logs in. The socket is destroyed when the signal aborts. */
export async function openSession(
  target: StoreTarget,
  trace: Trace,
  signal: AbortSignal,
): Promise<MysqlSession> {
  const logIn = await prepareLogin(target);
  const { socket } = await connectTo(target.address, { trace }, signal);
  let waitingFor = 'no greeting came in time; the server hangs, or another program listens there';
  let onBroken: (error: Error) => void = () => {};
  const end = new Promise<never>((_, reject) => {
    onBroken = reject;
  });
  end.catch(() => {});
  const failure = (thrown: unknown): unknown => {
    trace.end();
    socket.destroy();
    if (!signal.aborted) return thrown;
    const isInTls = trace.phase === 'tls';
    const what = isInTls ? 'the TLS handshake was not finished in time' : waitingFor;
    const msg = `${formatAddress(target.address)}: connected, but ${what}`;
    return new ProbeError(isInTls ? 'tls' : 'too_slow', msg, thrown);
  };
  try {
    socket.setNoDelay();
    trace.enter('first_byte');
    const announcedVersion = await awaitGreeting(socket);
    waitingFor = 'the login was not answered in time';
    const connection = await Promise.race([logIn({ socket, trace, onBroken }), end]);
    trace.end();
    waitingFor = 'a statement was not answered in time';
    const run = runOver(connection, end);
    return {
      announcedVersion,
      tlsNotAfterMs: trace.tlsNotAfterMs,
      id: connection.threadId,
      run: (statements) =>
        run(statements).catch((thrown: unknown) => {
          throw failure(thrown);
        }),
      async close() {
        await endSession(connection);
        socket.destroy();
      },
    };
  } catch (thrown) {
    throw failure(thrown);
  }
}

const headerBytes = 4;
/** A greeting has about a hundred bytes. */
const longestGreeting = 4096;
const errorMarker = 0xff;
const protocolVersions = [9, 10];

/** The error with which a server refuses a connection at once, in the driver's form. */
function refusalIn(packet: Buffer): Error {
  const [, sqlState = '', sqlMessage = ''] =
    /^(?:#(.{5}))?(.*)$/s.exec(packet.toString('utf8', headerBytes + 3)) ?? [];
  const errno = packet.readUInt16LE(headerBytes + 1);
  return Object.assign(new Error(sqlMessage), { errno, sqlState, sqlMessage });
}

/** The server's version, once the packet is complete; throws if the packet is no greeting, or is a refusal. */
function versionIn(bytes: Buffer): string | undefined {
  if (bytes.length <= headerBytes) return undefined;
  const length = bytes.readUIntLE(0, 3);
  const marker = bytes[headerBytes]!;
  const isPlausible = marker === errorMarker || (protocolVersions.includes(marker) && bytes[3] === 0);
  if (!isPlausible || length < 3 || length > longestGreeting)
    throw new ProbeError('protocol', 'the server does not speak the MySQL protocol');
  if (bytes.length < headerBytes + length) return undefined;
  const packet = bytes.subarray(0, headerBytes + length);
  if (marker === errorMarker) throw refusalIn(packet);
  const end = packet.indexOf(0, headerBytes + 1);
  return packet.toString('latin1', headerBytes + 1, end < 0 ? undefined : end);
}

/**
 * Waits for the server's first packet and leaves it unread for the driver, which would read any bytes as a packet of up to 16
 * MiB. Resolves with the server's version; rejects with the server's own error, such as error 1040, if the server refuses at
 * once.
 */
function awaitGreeting(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0);
    const settle = (done: () => void): void => {
      socket.off('readable', read).off('error', fail).off('close', closed);
      done();
    };
    const fail = (error: unknown): void => settle(() => reject(error));
    const closed = (): void =>
      fail(new ProbeError('reset', 'the server closed the connection before its greeting'));
    const read = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read())
        bytes = Buffer.concat([bytes, chunk]);
      try {
        const version = versionIn(bytes);
        if (version === undefined) return;
        socket.unshift(bytes);
        settle(() => resolve(version));
      } catch (error) {
        fail(error);
      }
    };
    socket.on('readable', read).on('error', fail).on('close', closed);
  });
}

/** The reasons for errors that the server sends, by number; any other error is `query_failed`. */
const byErrno: Readonly<Record<number, StoreFailureReason>> = {
  1040: 'too_many_connections',
  1203: 'denied', // the account has as many connections as it may have
  1226: 'denied', // the account used up another of its limits
  1044: 'denied',
  1129: 'denied', // the host is blocked after too many broken connections
  1130: 'denied', // the host is not allowed
  1142: 'denied',
  1143: 'denied',
  1227: 'denied',
  1045: 'credentials',
  1251: 'credentials', // the account uses an authentication that the driver does not support
  1524: 'credentials', // the account uses a plugin that the server has not loaded
  1698: 'credentials',
  1820: 'credentials', // the password has expired
  1862: 'credentials',
  3118: 'credentials', // the account is locked
  4150: 'credentials', // MariaDB: blocked after wrong passwords
  4151: 'credentials', // MariaDB: the account is locked
  3159: 'tls', // TLS is required
  1049: 'database_missing',
  1053: 'shutting_down',
  1079: 'shutting_down',
  1080: 'shutting_down',
  1927: 'reset', // MariaDB: the connection was killed
  3169: 'reset', // MySQL: the session was killed
  4031: 'reset',
};

/** The reasons for the driver's own errors, by code. */
const byCode: Readonly<Record<string, StoreFailureReason>> = {
  PROTOCOL_CONNECTION_LOST: 'reset',
  PROTOCOL_SEQUENCE_TIMEOUT: 'too_slow',
  HANDSHAKE_NO_SSL_SUPPORT: 'tls',
  HANDSHAKE_SSL_ERROR: 'tls',
  AUTH_SWITCH_PLUGIN_ERROR: 'credentials',
  MYSQL_CLEAR_PASSWORD_NOT_ENABLED: 'credentials',
};
/** The codes for invalid bytes. */
const malformed = /^(?:PROTOCOL_|HANDSHAKE_|ERR_OUT_OF_RANGE$|ERR_BUFFER_OUT_OF_BOUNDS$)/;

function reasonOf(thrown: unknown): StoreFailureReason {
  if (thrown instanceof ProbeError) return connectionFault(thrown).reason;
  const refusal = refusalOf(thrown);
  if (refusal !== undefined) return byErrno[refusal.errno] ?? 'query_failed';
  const code = systemCode(thrown) ?? '';
  if (Object.hasOwn(byCode, code)) return byCode[code]!;
  return malformed.test(code) ? 'protocol' : connectionFault(thrown).reason;
}

const advice: Readonly<Record<number | string, string>> = {
  1044: 'there is no such database, or the user has no right on it: svc-agent probe --print-grants prints what it needs',
  1129: 'run FLUSH HOSTS there once the cause is gone',
  3159: 'add tls: {} to the store',
  HANDSHAKE_NO_SSL_SUPPORT: 'set it up on the server, or remove tls from the store',
};
/** The server sends the same error for a wrong password and for an account that may only log in over TLS. */
const wrongPassword = 1045;
/** Matches the error of a node that may have other data than the rest of its cluster, and so runs no statement on tables. */
const galeraRefuses = /^WSREP has not yet prepared node/;
const unknownPlugin = /authentication using unknown plugin ([\w-]+)/;

function messageOf(thrown: unknown): string {
  const plugin = unknownPlugin.exec(errorText(thrown))?.[1];
  if (plugin !== undefined)
    return `the account logs in by ${plugin}, which the agent does not support; use mysql_native_password or caching_sha2_password`;
  const refusal = refusalOf(thrown);
  const isWithoutTls = (thrown as { withoutTls?: unknown } | null | undefined)?.withoutTls === true;
  const then =
    refusal?.errno === wrongPassword && isWithoutTls
      ? 'check user and password; if the account requires TLS, add tls: {} to the store'
      : advice[refusal?.errno ?? systemCode(thrown) ?? ''];
  if (refusal !== undefined && galeraRefuses.test(refusal.message))
    return `${refusal.message} (${refusal.errno}); this node is outside the primary component of its Galera cluster, or not synced yet: SHOW GLOBAL STATUS LIKE 'wsrep_%' shows which`;
  const text = refusal === undefined ? connectionFault(thrown).msg : `${refusal.message} (${refusal.errno})`;
  return then === undefined ? text : `${text}; ${then}`;
}

/** The reason and the message for what the driver, the server or the network threw. */
export function mysqlFault(thrown: unknown): StoreFault {
  return { reason: reasonOf(thrown), msg: excerpt(messageOf(thrown), 300) };
}
