import type { Socket } from 'node:net';
import type Driver from 'cassandra-driver/lib/connection.js';
import { formatAddress } from '../../../core/address.ts';
import { networkFault } from '../../../core/errors.ts';
import { connectTo } from '../../connection/connect.ts';
import type { StoreTarget } from '../store.ts';
import { CqlFailure } from './failure.ts';
import { type Breaking, watch } from './watch.ts';

export type Row = Readonly<Record<string, unknown>>;

/** One connection to one node. */
export interface CqlConnection {
  /** Earliest end of a certificate met, ms since the epoch. */
  tlsNotAfterMs?: number;
  /** The rows of one statement, read from one node; `withinMs` gives up on it alone. Throws what the driver throws. */
  query(cql: string, withinMs?: number): Promise<readonly Row[]>;
  /** Settles once the socket is closed. */
  close(): Promise<void>;
}

/** What every server since Cassandra 2.2 speaks. */
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

/** No timer of the driver's own: the look's signal is the only clock. */
function driverOptions({ address, user, password }: StoreTarget): object {
  return {
    contactPoints: [formatAddress(address)],
    applicationName: 'svc-agent',
    socketOptions: { readTimeout: 0, connectTimeout: 0 },
    pooling: { heartBeatInterval: 0 },
    ...(user !== undefined && { credentials: { username: user, password: password ?? '' } }),
  };
}

/** Lets the driver speak over a socket that is open; an error in its streams would end the process unheard. */
function bind(connection: Driver, socket: Socket, { fail }: Breaking): void {
  connection.netClient = socket;
  connection.bindSocketListeners();
  for (const stream of [connection.protocol, connection.parser])
    stream.on('error', (error: unknown) => {
      fail(new CqlFailure('protocol', 'the answer is not CQL', error));
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

/** Speaks for the driver where it was given no user, or threw what is no error of its own, nor of the socket. */
function explained(error: Error, { user }: StoreTarget): Error {
  if (user === undefined && error.name === 'AuthenticationError')
    return new CqlFailure(
      'credentials',
      'the server asks for a user and a password; none are configured',
      error,
    );
  if ('info' in error || networkFault(error) !== undefined) return error;
  return new CqlFailure('protocol', `the answer is not CQL: ${error.message}`, error);
}

/** Connects, greets and authenticates. Once the signal aborts, the socket is destroyed and whoever waits is told. */
export async function connect(target: StoreTarget, signal: AbortSignal): Promise<CqlConnection> {
  const { Connection, QueryRequest, ExecutionOptions, extend } = await load();
  const options = extend(driverOptions(target));
  const connection = new Connection(formatAddress(target.address), protocolVersion, options);
  const { socket, tlsNotAfterMs } = await connectTo(target.address, { tls: target.tls }, signal);
  const breaking = watch(socket, signal);
  const { broken } = breaking;
  bind(connection, socket, breaking);
  const ready = new Promise<void>((resolve, reject) => {
    connection.startup((error) => (error ? reject(explained(error, target)) : resolve()));
  });
  try {
    await Promise.race([broken, ready]);
  } catch (error) {
    await close(socket);
    throw error;
  }
  return {
    tlsNotAfterMs,
    query(cql, withinMs) {
      const asked = Object.assign(ExecutionOptions.empty(), {
        getConsistency: () => localOne,
        getReadTimeout: () => withinMs,
      });
      const rows = new Promise<readonly Row[]>((resolve, reject) => {
        connection.sendStream(new QueryRequest(cql, null, asked), asked, (error, result) =>
          error ? reject(explained(error, target)) : resolve(result?.rows ?? []),
        );
      });
      return Promise.race([broken, rows]);
    },
    close: () => close(socket),
  };
}
