import { createSocket, type Socket } from 'node:dgram';
import { lookup as lookUp } from 'node:dns/promises';
import { isIP } from 'node:net';
import { parseAddress } from '../../core/address.ts';
import { AgentError } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';

/** All addresses of a name, the preferred one first. */
export type Lookup = (host: string) => Promise<readonly { address: string; family: number }[]>;

/** IPv4 first: aggregators that listen on one loopback address listen on that of IPv4. */
export const systemLookup: Lookup = (host) => lookUp(host, { all: true, order: 'ipv4first' });

export interface DestinationDeps {
  lookup: Lookup;
  open: OpenDatagrams;
  clock: Clock;
  /** The kernel says, between two sends, that an earlier datagram came to nothing. */
  onError(error: Error): void;
  /** The name could not be resolved again; the address of before is used on. */
  onStale(error: unknown): void;
}

/** Where packets go. */
export interface Destination {
  /** The link to where the name points now. Rejects with a `ResolveFailure` or with what the socket said. */
  link(): Promise<Link>;
  /** The address may be wrong: the name is resolved again at the next `link`. */
  doubt(): void;
  close(): void;
}

/** The name has no address, and never had one. */
export class ResolveFailure extends Error {
  constructor(host: string, cause: unknown) {
    super(`${host} cannot be resolved`, { cause });
    this.name = 'ResolveFailure';
  }
}

/** An address is trusted so long, and a look-up may take so long. */
const resolveMs = 10_000;
const lookupMs = 2_000;

function within<T>(answer: Promise<T>, clock: Clock, waitMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(waitMs, () => reject(new Error(`no answer within ${waitMs} ms`)));
    answer.then(resolve, reject).finally(cancel);
  });
}

/** Resolves the name again every 10 s and after each failure. Throws `config_invalid` on what is no host:port. */
export function createDestination(hostPort: string, deps: DestinationDeps): Destination {
  const { lookup, open, clock } = deps;
  const address = parseAddress(hostPort);
  if (!address) {
    const fault = { where: 'pushmetrics.hostPort', what: 'not an address', got: hostPort };
    throw new AgentError('config_invalid', { ...fault, allowed: 'use host:port, such as 10.0.0.5:8125' });
  }
  const { host, port } = address;
  let link: Link | undefined;
  let resolvedMs = Number.NEGATIVE_INFINITY;

  const addresses: Lookup = async (name) => {
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
    doubt() {
      resolvedMs = Number.NEGATIVE_INFINITY;
    },
    close() {
      link?.close();
      link = undefined;
    },
  };
}

/** An IP address and port. */
export interface Endpoint {
  readonly address: string;
  readonly family: 4 | 6;
  readonly port: number;
}

/** The part of a datagram socket that is used. */
export type Datagrams = Pick<Socket, 'connect' | 'send' | 'on' | 'once' | 'close' | 'unref'>;
export type OpenDatagrams = (type: 'udp4' | 'udp6') => Datagrams;

export const openDatagrams: OpenDatagrams = (type) => createSocket(type);

/** A socket with one peer. It never keeps the process alive. */
export interface Link {
  readonly endpoint: Endpoint;
  /**
   * Resolves once the kernel has the datagram; rejects with what the kernel said. ECONNREFUSED then is about an
   * earlier datagram, but this one was not taken either (udp(7), Error handling).
   */
  send(datagram: Uint8Array): Promise<void>;
  close(): void;
}

/**
 * Connects, so that the kernel tells when nobody listens: `onError` gets what it says between two sends. Rejects
 * when there is no way to the peer.
 */
export function openLink(
  endpoint: Endpoint,
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
