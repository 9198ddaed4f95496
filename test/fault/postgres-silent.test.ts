import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { servingBare } from '../serving.ts';
import { checkStore, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

test.each([
  ['after it accepted', undefined, 'too_slow', 'first_byte'],
  ['after the request for TLS', {}, 'tls', 'tls'],
])('silent %s: the connection is gone', async (_, tls, reason, phase) => {
  const sockets: Socket[] = [];
  const port = await servingBare((socket) => sockets.push(socket.resume()));
  const stop = new AbortController();
  const pending = checkStore(storeOn(port, { tls }), { signal: stop.signal });
  await pollUntil(
    async () => sockets.some(({ bytesRead }) => bytesRead > 0),
    (spoke) => spoke,
  );
  stop.abort();
  const finding = await pending;
  expect(finding.reason).toBe(reason);
  if (tls === undefined) expect(finding.msg).toContain('connected, but not one byte came back');
  expect(Object.keys(finding.phasesMs!)).toEqual(['resolve', 'connect', phase]);
  await pollUntil(
    async () => sockets.every(({ destroyed }) => destroyed),
    (gone) => gone,
  );
});
