import { createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { checkStore, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

test.each([
  ['after it accepted', undefined, 'too_slow'],
  ['after the request for TLS', {}, 'tls'],
])('silent %s: the connection is gone', async (_, tls, reason) => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {}).resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const stop = new AbortController();
  const pending = checkStore(storeOn(port, { tls }), { signal: stop.signal });
  await pollUntil(
    async () => sockets.some(({ bytesRead }) => bytesRead > 0),
    (spoke) => spoke,
  );
  stop.abort();
  expect((await pending).reason).toBe(reason);
  await pollUntil(
    async () => sockets.every(({ destroyed }) => destroyed),
    (gone) => gone,
  );
  await new Promise((resolve) => server.close(resolve));
});
