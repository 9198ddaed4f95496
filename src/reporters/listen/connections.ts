import { isIPv6, type Socket } from 'node:net';
import type { Drops } from '../../core/ports.ts';

export interface ConnectionLimits {
  /** The maximum number of open connections. */
  connections: number;
  /** The maximum number of open connections of one client address. */
  connectionsPerAddress: number;
  /** The number of connections that are reserved for addresses that were served before. */
  reservedConnections: number;
}

/**
 * The open connections of a listener. Clients that open connections and send nothing, or send slowly, cannot exclude others: when
 * a limit is reached, a new connection replaces the oldest connection without a request in progress.
 */
interface Connections {
  /** Registers a new connection; false if it was closed because no other connection can be closed. */
  admit(socket: Socket): boolean;
  /**
   * Must be called when the headers of a request are complete. Accepts a TLS socket for the admitted socket below it. False if
   * the connection was closed because too many of its requests wait for an answer.
   */
  requestStarted(socket: Socket): boolean;
  /** Must be called when the response is over. `isServed`: the client was authorized and got a result. */
  requestEnded(socket: Socket, isServed: boolean): void;
}

interface ClientConnection {
  /** Address and port of the client. */
  readonly key: string;
  readonly socket: Socket;
  readonly client: string;
  /** The number of requests in progress; with pipelining more than one. */
  requests: number;
  /** Whether the connection is idle after a request and waits for the next request. */
  isIdle: boolean;
}

/**
 * The maximum number of requests of one connection at a time. Node reads as many as are sent without waiting for answers, and each
 * answer would be a page that waits in memory for the page before it. Scrapers and browsers wait for each answer.
 */
const mostRequests = 4;
/** How many served clients are remembered. */
const mostClients = 256;

/** The network that one client controls: an IPv4 address, or the /64 of an IPv6 address. */
function clientOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const groups = head.split(':').filter(Boolean);
  if (tail !== undefined) {
    const after = tail.split(':').filter(Boolean);
    while (groups.length + after.length < 8) groups.push('0');
    groups.push(...after);
  }
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}

const keyOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** The open connections, beginning with the connection with the oldest activity, and their number by client. */
function createConnectionTable() {
  const open = new Map<string, ClientConnection>();
  const counts = new Map<string, number>();
  const countOf = (client: string): number => counts.get(client) ?? 0;
  return {
    get size() {
      return open.size;
    },
    countOf,
    all: (): IterableIterator<ClientConnection> => open.values(),
    add(connection: ClientConnection): void {
      open.set(connection.key, connection);
      counts.set(connection.client, countOf(connection.client) + 1);
    },
    /** Removes a connection; does nothing if it is not there any more. */
    remove(connection: ClientConnection): void {
      const { key, client } = connection;
      if (open.get(key) !== connection) return;
      open.delete(key);
      if (countOf(client) > 1) counts.set(client, countOf(client) - 1);
      else counts.delete(client);
    },
    /** Moves a connection to the end, because its activity is the most recent. */
    touch(socket: Socket): ClientConnection | undefined {
      const key = keyOf(socket);
      const connection = open.get(key);
      if (!connection) return undefined;
      open.delete(key);
      open.set(key, connection);
      return connection;
    },
  };
}

export function createConnections(limits: ConnectionLimits, drops: Drops): Connections {
  const open = createConnectionTable();
  /** Clients that were served, beginning with the least recent. */
  const served = new Set<string>();
  const perClient = Math.min(limits.connectionsPerAddress, limits.connections);
  const forUnknown = limits.connections - Math.min(limits.reservedConnections, limits.connections >> 2);

  /**
   * Whether one connection is closed rather than another: first connections of clients that were never served, then connections
   * of the clients with most connections, then the connections with the oldest activity.
   */
  const isBetterVictim = (one: ClientConnection, other: ClientConnection | undefined): boolean => {
    if (!other) return true;
    if (served.has(one.client) !== served.has(other.client)) return !served.has(one.client);
    return open.countOf(one.client) > open.countOf(other.client);
  };
  /** Closes a connection without a request in progress for which `mayGo` is true; false if there is no such connection. */
  const makeRoom = (mayGo: (connection: ClientConnection) => boolean): boolean => {
    let victim: ClientConnection | undefined;
    for (const connection of open.all()) {
      if (connection.requests > 0 || !mayGo(connection)) continue;
      if (isBetterVictim(connection, victim)) victim = connection;
    }
    if (!victim) return false;
    // An idle connection has received all its responses.
    if (!victim.isIdle) drops.count('pull', 'too_many_connections');
    open.remove(victim);
    victim.socket.destroy();
    return true;
  };
  const unknownCount = (): number => {
    let count = 0;
    for (const { client } of open.all()) if (!served.has(client)) count += 1;
    return count;
  };
  const hasRoom = (client: string): boolean => {
    if (open.countOf(client) >= perClient && !makeRoom((connection) => connection.client === client))
      return false;
    if (served.has(client)) return open.size < limits.connections || makeRoom(() => true);
    const isUnknown = ({ client: other }: ClientConnection): boolean => !served.has(other);
    if (unknownCount() >= forUnknown && !makeRoom(isUnknown)) return false;
    return open.size < limits.connections || makeRoom(isUnknown);
  };
  const remember = (client: string): void => {
    served.delete(client);
    served.add(client);
    if (served.size > mostClients) served.delete(served.values().next().value!);
  };
  return {
    admit(socket) {
      const client = clientOf(socket.remoteAddress ?? '');
      if (!hasRoom(client)) {
        drops.count('pull', 'too_many_connections');
        socket.destroy();
        return false;
      }
      const connection: ClientConnection = { key: keyOf(socket), socket, client, requests: 0, isIdle: false };
      open.add(connection);
      socket.once('close', () => open.remove(connection));
      return true;
    },
    requestStarted(socket) {
      if (socket.destroyed) return false;
      const connection = open.touch(socket);
      if (!connection) return true;
      connection.requests += 1;
      if (connection.requests <= mostRequests) return true;
      drops.count('pull', 'too_many_requests');
      socket.destroy();
      return false;
    },
    requestEnded(socket, isServed) {
      const connection = open.touch(socket);
      if (!connection) return;
      connection.requests -= 1;
      connection.isIdle = true;
      if (isServed) remember(connection.client);
    },
  };
}
