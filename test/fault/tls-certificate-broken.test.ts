import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Certificate, makeCertificates } from '../integration/pull/certificates.ts';
import { listenerDeps, openListener } from '../integration/pull/scraper.ts';
import { connectSecurely } from '../integration/pull/secure.ts';

const made = makeCertificates();
const ours = made.authority('ours');
const server = made.signed('server', ours);
const other = made.signed('other', ours);

const listen = (live: Certificate, clientCaFile?: string) => {
  const made = listenerDeps();
  const deps = { ...made, clock: { ...made.clock, nowMs: Date.now } };
  const tls = { certFile: live.cert, keyFile: live.key, ...(clientCaFile && { clientCaFile }) };
  return openListener({ place: 'metrics.pullmetrics', secure: { tls } }, deps);
};

test('a certificate that breaks while it serves is logged once, and the old one stays until the repair', async () => {
  const live = { cert: join(made.folder, 'live.pem'), key: join(made.folder, 'live.key') };
  copyFileSync(server.cert, live.cert);
  copyFileSync(server.key, live.key);
  const { listener, logged } = await listen(live);
  const served = async () => {
    const socket = await connectSecurely(listener.address, { trusts: ours });
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return CN;
  };
  const errors = () =>
    logged.filter(({ level }) => level === 'error').map(({ fields }) => String(fields?.error));
  const said: string[] = [];
  const spoil = async (how: () => void, what: string) => {
    how();
    said.push(what);
    expect([await served(), await served(), await served()]).toEqual(['server', 'server', 'server']);
    expect(errors()).toHaveLength(said.length);
    expect(errors().at(-1)).toContain(what);
  };
  await spoil(
    () => writeFileSync(live.cert, 'half a cert'),
    'metrics.pullmetrics.tls.certFile: contains no certificate',
  );
  await spoil(() => rmSync(live.cert), 'certFile: cannot be read (ENOENT');
  // If two files are replaced one after the other, they do not fit each other in between.
  await spoil(() => copyFileSync(other.cert, live.cert), 'keyFile: is not the key of the certificate');
  copyFileSync(other.key, live.key);
  expect(await served()).toBe('other');
  expect(errors()).toHaveLength(said.length);
});

test.each([
  ['no certificate', () => ({ cert: ours.key, key: server.key }), 'certFile: contains no certificate'],
  ['no key', () => ({ cert: server.cert, key: server.cert }), 'keyFile: contains no usable private key'],
  [
    'the key of another',
    () => ({ cert: server.cert, key: ours.key }),
    'keyFile: is not the key of the certificate',
  ],
])('a listener with %s does not start', async (_, files, what) => {
  await expect(listen(files())).rejects.toMatchObject({
    code: 'listen_failed',
    message: expect.stringContaining(`metrics.pullmetrics.tls.${what}`),
  });
});

test('nor does one whose client CA is none', async () => {
  await expect(listen(server, server.key)).rejects.toThrow('clientCaFile: contains no certificate');
});

test('an expired certificate serves, as the client decides, and is warned of', async () => {
  const expired = made.signed('expired', ours, { days: -1 });
  const { listener, logged } = await listen(expired);
  expect(logged.find(({ level }) => level === 'warn')).toMatchObject({
    level: 'warn',
    msg: 'certificate expired',
    fields: { file: expired.cert },
  });
  await expect(connectSecurely(listener.address, { trusts: ours })).rejects.toThrow('expired');
});
