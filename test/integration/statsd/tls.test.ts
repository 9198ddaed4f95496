import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RolePipeline } from '../../../src/agent/role-pipeline.ts';
import { systemClock } from '../../../src/core/clock.ts';
import { configOf, openRoles } from '../../role-pipeline.ts';
import { until } from '../../until.ts';
import { makeCertificates } from '../pull/certificates.ts';
import { rest, say } from '../pull/scraper.ts';
import { connectSecurely } from '../pull/secure.ts';

const made = makeCertificates();
const ours = made.authority('ours');
const theirs = made.authority('theirs');
const server = made.signed('server', ours);

let relays: RolePipeline;
beforeEach(() => {
  relays = openRoles(systemClock).roles;
});
afterEach(() => relays.stop());

async function configure(tls: object | undefined, tcp = '127.0.0.1:0'): Promise<void> {
  const text = JSON.stringify({ services: { frontend: { statsd: { tcp, tls } } } });
  await relays.configure(await configOf(text, made.folder));
}
const status = () => [...relays.all()][0]!.statsd!.status();
const address = () => status().addresses.tcp!;
const files = () => ({ cert_file: server.cert, key_file: server.key });

test('all lines of a stream that ends at once are counted', async () => {
  await configure(files());
  const socket = await connectSecurely(address(), { trusts: ours });
  socket.resume().end('a.counter:1|c\n'.repeat(100_000));
  await once(socket, 'close');
  await until('all lines came', () => status().lines === 100_000);
  expect(status()).toMatchObject({ refused: {}, knownLines: 1 });
});

test('only clients of the authority write', async () => {
  await configure({ ...files(), client_ca_file: ours.cert });
  for (const shows of [undefined, made.signed('stranger', theirs)]) {
    const socket = await connectSecurely(address(), { trusts: ours, ...(shows && { shows }) });
    socket.resume().write('intruder:1|c\n');
    await once(socket, 'close');
  }
  const friend = await connectSecurely(address(), { trusts: ours, shows: made.signed('client', ours) });
  friend.end('a:1|c\n');
  await until('the line came', () => status().lines === 1);
  expect(status()).toMatchObject({ refused: { handshake_failed: 2 }, knownLines: 1 });
});

test('lines in the clear are refused and counted', async () => {
  await configure(files());
  await rest(await say(address(), 'a:1|c\n'.repeat(20)));
  await until('it is counted', () => status().refused.handshake_failed === 1);
  expect(status()).toMatchObject({ lines: 0, examples: { handshake_failed: expect.any(String) } });
});

test('a reload whose files are missing changes nothing; one whose files are there turns TLS on', async () => {
  await configure(undefined);
  const tcp = address();
  await relays.stop();
  await configure(undefined, tcp);
  const gone = { ...files(), cert_file: `${server.cert}.gone` };
  await expect(configure(gone, tcp)).rejects.toMatchObject({
    code: 'listen_failed',
    fault: { where: 'services.frontend.statsd.tls.certFile', got: `${server.cert}.gone` },
  });
  (await say(tcp, 'a:1|c\n')).end();
  await until('it still listens in the clear', () => status().lines === 1);
  await configure(files(), tcp);
  (await connectSecurely(tcp, { trusts: ours })).end('a:1|c\n');
  await until('and then through TLS', () => status().lines === 1);
});

test('stopping closes streams and handshakes under way', async () => {
  await configure(files());
  const [silent, open] = [await say(address(), ''), await connectSecurely(address(), { trusts: ours })];
  const ends = [rest(silent), once(open.resume(), 'close')];
  open.write('a:1|c\nb:');
  await until('the line came', () => status().lines === 1);
  await relays.stop();
  await Promise.all(ends);
});

test('a certificate that was replaced serves the next client', async () => {
  const live = made.signed('live', ours);
  await configure({ cert_file: live.cert, key_file: live.key });
  const first = await connectSecurely(address(), { trusts: ours });
  const next = made.signed('next', ours);
  renameSync(next.key, live.key);
  renameSync(next.cert, live.cert);
  const second = await connectSecurely(address(), { trusts: ours });
  expect([first, second].map((socket) => socket.getPeerCertificate().subject.CN)).toEqual(['live', 'next']);
  for (const socket of [first, second]) socket.destroy();
});
