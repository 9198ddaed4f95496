import { type AddressInfo, createServer, type Server } from 'node:net';

/**
 * The range is below the ports that Linux gives to outgoing connections, so that another test's client cannot use one meanwhile.
 */
const [lowest, count] = [15_000, 17_000];

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** A port on loopback on which nothing listens. It is chosen at random, because other tests choose theirs at the same time. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * count);
    if (await isFree(port)) return port;
  }
}

/** Binds a server to a free port on loopback; resolves with the port when it listens. */
export async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
