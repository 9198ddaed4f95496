import { expect, test } from 'vitest';
import type { ListenerLimits } from '../../src/reporters/listen/listener.ts';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { openListener, rest, say } from '../integration/pull/scraper.ts';
import { connectSecurely, getSecurely } from '../integration/pull/secure.ts';
import { until } from '../until.ts';

const made = makeCertificates();
const ours = made.authority('ours');
const server = made.signed('server', ours);

const listen = (limits: Partial<ListenerLimits>) =>
  openListener({ limits, secure: { tls: { certFile: server.cert, keyFile: server.key } } });

test.each([
  ['sends nothing', ''],
  ['begins a record and no more', '\x16\x03\x01\x02'],
])('a client that %s is cut off after handshakeMs and counted', async (_, sent) => {
  const { listener, dropped } = await listen({ handshakeMs: 50 });
  expect(await rest(await say(listener.address, sent))).not.toContain('HTTP');
  expect(dropped).toEqual(['pull handshake_failed']);
});

test('a client that shakes hands and then sends nothing has headerMs', async () => {
  const { listener, dropped } = await listen({ headerMs: 50, handshakeMs: 600_000 });
  expect(await rest(await connectSecurely(listener.address, { trusts: ours }))).toContain('HTTP/1.1 408');
  expect(dropped).toEqual([]);
});

test('connections in a handshake count, and the oldest makes room for a new one', async () => {
  const { listener, dropped } = await listen({ connections: 2, handshakeMs: 600_000 });
  const silent = [await say(listener.address, ''), await say(listener.address, '')];
  const first = rest(silent[0]!);
  expect((await getSecurely(listener.address, '/a', { trusts: ours })).status).toBe(200);
  await first;
  expect(dropped).toContain('pull too_many_connections');
  expect(silent[1]!.destroyed).toBe(false);
});

test('an idle TLS connection makes room for a new one', async () => {
  const { listener, dropped } = await listen({ connections: 1 });
  const idle = await connectSecurely(listener.address, { trusts: ours });
  idle.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('it is answered', () => idle.bytesRead > 0);
  const ended = rest(idle);
  expect((await getSecurely(listener.address, '/a', { trusts: ours })).status).toBe(200);
  await ended;
  expect(dropped).toEqual([]);
});

test('a client that leaves at any byte of its handshake harms nobody', async () => {
  const { listener } = await listen({});
  for (const sent of [
    '\x16',
    '\x16\x03\x01\x00\xff',
    `\x16\x03\x01\x00\x05${'\xff'.repeat(5)}`,
    'GET / HTTP/1.1\r\n\r\n',
  ]) {
    const socket = await say(listener.address, sent);
    socket.resetAndDestroy();
  }
  const early = await connectSecurely(listener.address, { trusts: ours });
  early.write('GET /a HTTP/1.1\r\n');
  early.destroy();
  expect((await getSecurely(listener.address, '/a', { trusts: ours })).status).toBe(200);
});
