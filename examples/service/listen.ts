import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Listener {
  /** The port it got, if it was asked for 0. */
  port: number;
  /** Ends connections too, so that a client sees it as it sees a process that is gone. */
  close(): Promise<void>;
}

/** The port of loopback for somebody who listens there later, any free one for 0. Rejects as `listen` does. */
export async function freePort(wanted: number): Promise<number> {
  const { port, close } = await listen(wanted, () => {});
  await close();
  return port;
}

/** Serves on loopback. Rejects with the system's error (`EADDRINUSE`) if the port cannot be had. */
export function listen(port: number, answer: RequestListener): Promise<Listener> {
  const server = createServer(answer);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve({
        port: (server.address() as AddressInfo).port,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      });
    });
  });
}
