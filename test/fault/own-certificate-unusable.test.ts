import { copyFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { StatusReport } from '../../src/agent/report.ts';
import { startAgent } from '../e2e/process.ts';
import { makeCertificates } from '../integration/pull/certificates.ts';
import { folder } from '../run-folder.ts';
import { until } from '../until.ts';

const made = makeCertificates();
const ours = made.authority('ours');
const good = made.signed('good', ours, { days: 60 });
const other = made.signed('other', ours, { days: 60 });
const ended = made.signed('ended', ours, { days: -1 });

/** The status over TLS, whatever the certificate. */
const statusAt = (address: string): Promise<StatusReport> =>
  new Promise((resolve, reject) => {
    get(`https://${address}/api/status`, { rejectUnauthorized: false, agent: false }, async (response) => {
      let text = '';
      for await (const piece of response) text += piece;
      resolve(JSON.parse(text) as StatusReport);
    }).on('error', reject);
  });

test('a certificate of the agent that ends, or cannot be replaced, is in the verdict until it is good', async () => {
  const place = folder();
  onTestFinished(place.remove);
  const [cert, key] = [join(place.path, 'agent.crt'), join(place.path, 'agent.key')];
  const rotate = (to: typeof good) => {
    copyFileSync(to.cert, cert);
    copyFileSync(to.key, key);
  };
  rotate(good);
  const file = join(place.path, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${place.path}/state
admin: {listenAddress: "127.0.0.1:0", health: "127.0.0.1:0", tls: {certFile: ${cert}, keyFile: ${key}}}
roles: []
`,
  );
  const agent = await startAgent(file);
  onTestFinished(async () => {
    await agent.end();
  });
  const sentence = async () => (await statusAt(agent.address('admin'))).verdict.sentence;
  expect(await sentence()).toMatch(/^Nothing is watched/);
  copyFileSync(other.cert, cert);
  await until('the refused files are named', async () =>
    /^The certificate of listener admin is not replaced by the new files, which cannot be used/.test(
      await sentence(),
    ),
  );
  const { listeners, verdict } = await statusAt(agent.address('admin'));
  expect(listeners.find(({ listener }) => listener === 'admin')?.certificate?.refused).toMatch(
    /keyFile.*is not the key of the certificate/,
  );
  expect(verdict.cause?.kind).toBe('certificate');
  rotate(ended);
  await until('the end is named', async () =>
    /^The certificate of listener admin has expired/.test(await sentence()),
  );
  rotate(good);
  await until('it is good again', async () => /^Nothing is watched/.test(await sentence()));
});
