import { createSocket, type Socket } from 'node:dgram';
import { lookup as lookUp } from 'node:dns/promises';
import { isIP } from 'node:net';
import { addressOf } from '../../core/address.ts';
import type { Clock } from '../../core/ports.ts';

/** All addresses of a host name, the preferred one first. */
export type DestinationLookup = (host: string) => Promise<readonly { address: string; family: number }[]>;

/** The system's name resolution, IPv4 first: aggregators on loopback usually listen on IPv4. */
export const systemLookup: DestinationLookup = (host) => lookUp(host, { all: true, order: 'ipv4first' });

export interface DestinationDeps {
  lookup: DestinationLookup;
  open: OpenDatagrams;
  clock: Clock;
  /** Called when the kernel reports, between two sends, that an earlier datagram was not delivered. */
  onError(error: Error): void;
  /** Called when the name could not be resolved again; the old address stays in use. */
  onStale(error: unknown): void;
}

/** The receiver of the datagrams. */
interface Destination {
  /** A socket to the current address of the name. Rejects with a `ResolveFailure` or with the socket's error. */
  link(): Promise<Link>;
  /** Marks the address as possibly outdated: the next `link` resolves the name again. */
  markStale(): void;
  close(): void;
}

/** The error if the name could not be resolved and no earlier address is known. */
export class ResolveFailure extends Error {
  constructor(host: string, cause: unknown) {
    super(`${host} cannot be resolved`, { cause });
    this.name = 'ResolveFailure';
  }
}

/** How long an address is valid, and the timeout of a lookup. */
const resolveMs = 10_000;
const lookupMs = 2_000;

function within<T>(answer: Promise<T>, clock: Clock, waitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(waitMs, () => reject(new Error(`no answer within ${waitMs} ms`)));
    answer.then(resolve, reject).finally(cancel);
  });
}

/**
 * Creates a destination, which resolves the name every 10 s and after each failure. Throws `config_invalid` for an invalid
 * `hostPort`.
 */
export function createDestination(hostPort: string, deps: DestinationDeps): Destination {
  const { lookup, open, clock } = deps;
  const { host, port } = addressOf('pushmetrics.hostPort', hostPort, '10.0.0.5:8125');
  let link: Link | undefined;
  let resolvedMs = Number.NEGATIVE_INFINITY;

  const addresses: DestinationLookup = async (name) => {
    const family = isIP(name);
    if (family !== 0) return [{ address: name, family }];
    const found = await within(lookup(name), clock, lookupMs);
    if (found.length === 0) throw new Error('the name has no address');
    return found;
  };

  const resolve = async () => {
    try {
      const found = await addresses(host);
      resolvedMs = clock.monotonicMs();
      return found;
    } catch (error) {
      if (!link) throw new ResolveFailure(host, error);
      deps.onStale(error);
      return [link.endpoint];
    }
  };

  return {
    async link() {
      if (link && clock.monotonicMs() - resolvedMs < resolveMs) return link;
      const found = await resolve();
      if (link && found.some((each) => each.address === link!.endpoint.address)) return link;
      link?.close();
      link = undefined;
      const { address, family } = found[0]!;
      link = await openLink({ address, family: family === 6 ? 6 : 4, port }, open, deps.onError);
      return link;
    },
    markStale() {
      resolvedMs = Number.NEGATIVE_INFINITY;
    },
    close() {
      link?.close();
      link = undefined;
    },
  };
}

/** An IP address and port. */
interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
  readonly port: number;
}

/** The methods of a datagram socket that are used. */
type Datagrams = Pick<Socket, 'connect' | 'send' | 'on' | 'once' | 'close' | 'unref'>;
export type OpenDatagrams = (type: 'udp4' | 'udp6') => Datagrams;

export const openDatagrams: OpenDatagrams = (type) => createSocket(type);

/** A connected datagram socket. */
export interface Link {
  readonly endpoint: ResolvedAddress;
  /**
   * Resolves once the kernel has accepted the datagram; rejects with the kernel's error. ECONNREFUSED belongs to an earlier
   * datagram, but this one was not sent either (udp(7), Error handling).
   */
  send(datagram: Uint8Array): Promise<void>;
  close(): void;
}

/**
 * Connects, so that the kernel reports when nobody listens: `onError` gets errors between two sends. Rejects if the
 * receiver is unreachable.
 */
function openLink(
  endpoint: ResolvedAddress,
  open: OpenDatagrams,
  onError: (error: Error) => void,
): Promise<Link> {
  const socket = open(endpoint.family === 6 ? 'udp6' : 'udp4');
  let isClosed = false;
  const link: Link = {
    endpoint,
    send: (datagram) =>
      new Promise((resolve, reject) => {
        socket.send(datagram, (error) => (error ? reject(error) : resolve()));
      }),
    close() {
      if (!isClosed) socket.close();
      isClosed = true;
    },
  };
  return new Promise((resolve, reject) => {
    let isConnected = false;
    socket.on('error', (error) => {
      if (isConnected) return onError(error);
      link.close();
      reject(error);
    });
    socket.once('connect', () => {
      isConnected = true;
      resolve(link);
    });
    socket.unref();
    socket.connect(endpoint.port, endpoint.address);
  });
}
