import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

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

/** A server on its own port; `close` ends its connections, too. */
interface TestServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Makes any server of `node:net`'s kind listen on loopback, by default on a free port. */
export async function listening(server: Server, { host = '127.0.0.1', port = 0 } = {}): Promise<TestServer> {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}
