import { createSocket, type Socket } from 'node:dgram';

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
