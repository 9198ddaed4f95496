import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import build from 'undici/lib/core/connect.js';
import type { ClientTls } from '../../../core/access.ts';
import { type Address, isLoopback, isWildcard } from '../../../core/address.ts';
import { ScrapeFailure } from '../failure.ts';

export interface ConnectOptions {
  timeoutMs: number;
  tls?: ClientTls;
  /** The agent's own listeners as they are bound now. */
  ownListeners(): readonly Address[];
}

async function tlsOptions(tls: ClientTls): Promise<object> {
  const { caFile, certFile, keyFile } = tls;
  const read = (path: string | undefined) => (path === undefined ? undefined : readFile(path));
  try {
    const [ca, cert, key] = await Promise.all([read(caFile), read(certFile), read(keyFile)]);
    return { ca, cert, key, servername: tls.serverName, rejectUnauthorized: tls.insecure !== true };
  } catch (error) {
    throw new ScrapeFailure('credentials', `a TLS file cannot be read: ${String(error)}`, error);
  }
}

/** Whether the remote end of a connection is one of the agent's own listeners. */
function isOwn(socket: Socket, listeners: readonly Address[]): boolean {
  const remote = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const local = (socket.localAddress ?? '').replace(/^::ffff:/, '');
  if (!isLoopback(remote) && remote !== local) return false;
  return listeners.some(
    ({ host, port }) =>
      port === socket.remotePort &&
      (isWildcard(host) || host === remote || (isLoopback(host) && isLoopback(remote))),
  );
}

/**
 * Opens connections to a target. TLS files are read for each one, so that renewed certificates are used. A
 * connection that leads to the agent itself is refused.
 */
export function createConnect({ timeoutMs, tls, ownListeners }: ConnectOptions): buildConnector.connector {
  return (target, callback) => {
    const open = (options: object): void => {
      build({ timeout: timeoutMs, ...options } as buildConnector.BuildOptions)(target, (...result) => {
        const [error, socket] = result;
        if (error === null && isOwn(socket, ownListeners())) {
          socket.destroy();
          const what = `the target ${socket.remoteAddress}:${socket.remotePort} is a listener of this agent`;
          callback(new ScrapeFailure('own_endpoint', what), null);
        } else callback(...result);
      });
    };
    if (tls === undefined) open({});
    else tlsOptions(tls).then(open, (error: Error) => callback(error, null));
  };
}
