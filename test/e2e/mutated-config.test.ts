import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { mutatedConfig, secret } from '../mutated-config.ts';
import { bySize } from '../size.ts';
import { mainFile, start } from './process.ts';

const folder = newFolder(afterAll);

async function checked(text: string, name: string) {
  const file = join(folder, name);
  writeFileSync(file, text);
  const run = start(process.execPath, [mainFile, 'check', '-c', file]);
  return { status: await run.ended, output: run.output() };
}

const oddities = [
  'metrics: {pullmetrics: {listenAddress: "127.0.0.1:0", defaultHistogramBuckets: [1, {toString: 1}]}}',
  `services: {a: {scrape: "http://user:${secret}@127.0.0.1:1/metrics x"}}`,
  `stores: [{name: a, kind: postgres, address: "a:1", password: !${secret} x}]`,
];

test('the built check ends mutated configurations with 0, 1 or 2, without a trace or a secret', async () => {
  const texts = [...oddities, ...fc.sample(mutatedConfig, bySize({ short: 5, long: 100, nightly: 2000 }))];
  const worker = async (n: number) => {
    for (let text = texts.pop(); text !== undefined; text = texts.pop()) {
      const { status, output } = await checked(text, `agent-${n}.yaml`);
      expect([0, 1, 2], `${text}\n${output}`).toContain(status);
      expect(output).not.toMatch(/^\s+at .*:\d+:\d+/m);
      expect(output).not.toContain(secret);
    }
  };
  await Promise.all([worker(0), worker(1)]);
});
