import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import type { StatusReport } from '../../src/agent/report.ts';
import { connectionTls } from '../../src/core/client-tls.ts';
import { command, startAgent } from '../e2e/process.ts';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { folder } from '../run-folder.ts';
import { servingOn } from '../serving.ts';
import { until } from '../until.ts';

// A rotation writes the certificate before the key, so that for a moment they do not belong together.

const made = makeCertificates();
const ours = made.authority('ours');
const one = made.signed('one', ours, { days: 1 });
const other = made.signed('other', ours, { days: 1 });

/** A server of HTTPS that closes each connection after its answer. */
async function serve(): Promise<number> {
  const files = { cert: readFileSync(one.cert), key: readFileSync(one.key), ca: readFileSync(ours.cert) };
  const server = createServer({ ...files, requestCert: true, rejectUnauthorized: true }, (_, response) => {
    response.setHeader('connection', 'close');
    response.end('# TYPE svc_num_goroutines gauge\nsvc_num_goroutines 7\n');
  });
  return servingOn(server);
}

test('the agent lives, says which file is wrong, and goes on when both are there', async () => {
  const place = folder();
  onTestFinished(place.remove);
  const [cert, key] = [join(place.path, 'client.crt'), join(place.path, 'client.key')];
  const rotate = (to: typeof one, ofKey = to) => {
    copyFileSync(to.cert, cert);
    copyFileSync(ofKey.key, key);
  };
  rotate(one, other);
  const port = await serve();
  const tls = `{caFile: ${ours.cert}, certFile: ${cert}, keyFile: ${key}, serverName: localhost}`;
  const file = join(place.path, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${place.path}/state
metrics: {hostedmetrics: {protocol: remotewrite, endpoint: "https://127.0.0.1:${port}/", tls: ${tls}}, reportingInterval: 1s}
admin: {listenAddress: "127.0.0.1:0"}
services:
  frontend: {scrape: {url: "https://127.0.0.1:${port}/metrics", interval: 1s, timeout: 1s, tls: ${tls}}}
`,
  );
  const checked = command(['check', file]);
  expect([checked.status, checked.stdout]).toEqual([1, expect.stringContaining('keyFile')]);

  const agent = await startAgent(file);
  onTestFinished(async () => {
    await agent.end();
  });
  const page = async () => (await fetch(`http://${agent.address('admin')}/metrics`)).text();
  const status = async () => (await fetch(`http://${agent.address('admin')}/api/status`)).text();
  const isScraped = async () => {
    const { scrapes } = JSON.parse(await status()) as StatusReport;
    return scrapes.every(({ up }) => up === true);
  };
  const isSaid = async () => /tls\.keyFile: not the key of tls\.certFile/.test(await status());
  await until('the mismatch is said', isSaid);
  await until('the reporter fails, too', async () =>
    /^svc_agent_report_failures_total\{[^}]*reason="credentials"[^}]*\} [1-9]/m.test(await page()),
  );
  rotate(one);
  await until('the role is scraped', isScraped);
  writeFileSync(cert, readFileSync(other.cert, 'utf8').slice(0, 300));
  await until('half a certificate is said', async () =>
    /tls\.certFile: not a certificate/.test(await status()),
  );
  rotate(other);
  await until('the role is scraped again', isScraped);
});

test.each([
  ['no key', {}, { servername: undefined, rejectUnauthorized: true }],
  ['another name', { insecure: true, serverName: 'a' }, { servername: 'a', rejectUnauthorized: false }],
])('the options of a connection with %s', async (_, tls, expected) => {
  expect(
    await connectionTls(tls, { readFile: async () => Buffer.from(''), createSecureContext }),
  ).toMatchObject(expected);
});

test.each([
  ['caFile', 'not a certificate in PEM', { caFile: 'garbage' }],
  // OpenSSL accepts these files, and then trusts nobody.
  ['caFile', 'not a certificate in PEM', { caFile: one.key }],
  ['certFile', 'not a certificate in PEM', { certFile: 'garbage', keyFile: one.key }],
  ['keyFile', 'not a private key in PEM without a passphrase', { certFile: one.cert, keyFile: 'garbage' }],
  ['keyFile', 'not the key of tls.certFile', { certFile: one.cert, keyFile: other.key }],
  ['keyFile', 'cannot be read', { certFile: one.cert, keyFile: 'gone' }],
])('%s: %s', async (key, what, tls) => {
  const readTlsFile = async (path: string) => {
    if (path === 'gone') throw new Error('ENOENT');
    return path === 'garbage' ? Buffer.from('-----BEGIN CERTIFICATE-----\nx') : readFileSync(path);
  };
  await expect(connectionTls(tls, { readFile: readTlsFile, createSecureContext })).rejects.toThrow(
    `tls.${key}: ${what}`,
  );
});
