import { expect, test } from 'vitest';
import { servingBare } from '../serving.ts';
import { checkStore, storeOn } from '../store-probe.ts';

test.each([
  ['without a word', undefined, ''],
  ['without a word on TLS', {}, ''],
  ['after it agreed to TLS', {}, 'S'],
  ['in the middle of its first message', undefined, 'R\0\0'],
])('the server closes the connection %s: reset, and long before the time is over', async (_, tls, said) => {
  const port = await servingBare((socket) => socket.once('data', () => socket.end(said)));
  const finding = await checkStore(storeOn(port, { tls }), { signal: new AbortController().signal });
  expect(finding.reason).toBe('reset');
  expect(finding.msg).toMatch(/^the server closed the connection/);
});
