import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { listening } from '../ports.ts';
import { checkStore, storeOn } from '../store-probe.ts';

test.each([
  ['without a word', undefined, ''],
  ['without a word on TLS', {}, ''],
  ['after it agreed to TLS', {}, 'S'],
  ['in the middle of its first message', undefined, 'R\0\0'],
])('the server closes the connection %s: reset, and long before the time is over', async (_, tls, said) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end(said));
  });
  const { port } = await listening(server);
  const finding = await checkStore(storeOn(port, { tls }), { signal: new AbortController().signal });
  expect(finding.reason).toBe('reset');
  expect(finding.msg).toMatch(/^the server closed the connection/);
  await new Promise((resolve) => server.close(resolve));
});
