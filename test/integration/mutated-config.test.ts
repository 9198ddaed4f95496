import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { validate } from '../../src/agent/config/validate.ts';
import { faultLine } from '../../src/core/errors.ts';
import { newFolder } from '../folder.ts';
import { mutatedConfig, secret, wholeConfig } from '../mutated-config.ts';
import { bySize } from '../size.ts';

const folder = newFolder(afterAll);
const file = join(folder, 'mutated.yaml');

const runs = bySize({ short: 200, long: 1_000, nightly: 1_000_000 });

function checked(text: string) {
  writeFileSync(file, text);
  return validate({ file, env: {}, cwd: folder });
}

test('the configuration that is mutated has faults only where a URL has a user part', async () => {
  const { faults } = await checked(JSON.stringify(wholeConfig));
  expect(faults.map(({ path }) => path)).toEqual([
    'services.frontend.health.url',
    'services.history.scrape',
    'services.history.metrics.hostedmetrics.endpoint',
  ]);
});

test(`${runs} mutated configurations: none throws, and none shows a secret`, async () => {
  await fc.assert(
    fc.asyncProperty(mutatedConfig, async (text) => {
      const { faults, warnings, findings, discovered } = await checked(text);
      const told = [...faults, ...warnings, ...findings].map(faultLine).join('\n');
      expect(told + JSON.stringify([faults, warnings, findings, discovered])).not.toContain(secret);
    }),
    { numRuns: runs },
  );
}, 600_000);

test.each([
  [
    'a value that no check was made for',
    'metrics: {pullmetrics: {listenAddress: "a:1", defaultHistogramBuckets: [1, {toString: 1}]}}',
  ],
  ['an alias in the place of a secret', `stores: [{name: a, password: *${secret}}]`],
  ['a tag in the place of a secret', `stores: [{name: a, password: !${secret} x}]`],
  ['a secret as a key', `stores: [{name: a, password: {${secret}: 1}}]`],
  ['a secret with what looks like a variable', `stores: [{name: a, password: "${secret}\${${secret}}"}]`],
  ['a URL with an odd user part', `services: {a: {scrape: "http://u:${secret}/@h@${secret}@host/x"}}`],
  ['an address with a user part', `metrics: {pullmetrics: {listenAddress: "u:${secret}@0.0.0.0:9464"}}`],
  ['a token in a query', `services: {a: {scrape: "ftp://h/metrics?token=${secret}&x=1"}}`],
])('%s: a fault that does not show it', async (_, text) => {
  const { faults } = await checked(text);
  expect(faults.length).toBeGreaterThan(0);
  expect(JSON.stringify(faults)).not.toContain(secret);
});
