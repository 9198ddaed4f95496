import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { bySize } from '../size.ts';
import { anyMoment, until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { type RunningAgent, startAgent } from './process.ts';
import { createWriter, type Writer } from './writer.ts';

const kills = bySize({ short: 4, long: 12, nightly: 500 });
/** How many batches are written while one agent runs, so that the work does not grow with the time that a busy machine takes. */
const batchesPerLife = 100;
const place = newFolder(afterAll);
let agent: RunningAgent | undefined;
let writer: Writer | undefined;
let writing = true;
afterAll(async () => {
  writing = false;
  await agent?.end();
  writer?.close();
});

/** Numbers that look random and are the same in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The exposed total, or undefined when the agent does not answer. */
async function total(address: string): Promise<number | undefined> {
  const page = await fetch(`http://${address}/metrics`).then(
    (response) => (response.ok ? response.text() : undefined),
    () => undefined,
  );
  if (page === undefined) return undefined;
  const values = [...page.matchAll(/^svc_log_entries_total\{.*\} (\S+)$/gm)].map(([, value]) =>
    Number(value),
  );
  return values.reduce((sum, value) => sum + value, 0);
}

test('killed with SIGKILL at random moments: the total is right and never falls', async () => {
  const random = seeded(20261120);
  const log = join(place, 'history.log');
  const config = agentFile(place, { logs: log });
  writer = createWriter(log);
  let rotations = 0;
  let isKnown = false;
  let batches = batchesPerLife;
  const writeOn = (async () => {
    while (writing) {
      if (batches-- > 0) writer.write(400);
      // A line that is rotated out of the pattern before the agent ever looked need not be counted.
      if (isKnown && random() < 0.02) writer.rotateByRename(`${log}.${++rotations}`);
      await anyMoment(random, 2);
    }
  })();

  const seen: number[] = [];
  for (let kill = 0; kill < kills; kill++) {
    agent = await startAgent(config);
    isKnown = true;
    batches = batchesPerLife;
    const address = agent.address('metrics');
    const killAfterMs = random() * 150;
    const begun = performance.now();
    while (performance.now() - begun < killAfterMs) {
      const value = await total(address);
      if (value !== undefined) seen.push(value);
    }
    await agent.end('SIGKILL');
  }
  writing = false;
  await writeOn;

  agent = await startAgent(config);
  const address = agent.address('metrics');
  await until('every line is counted', async () => {
    const value = await total(address);
    if (value !== undefined) seen.push(value);
    return value !== undefined && value >= writer!.total();
  });

  expect(seen.at(-1)).toBe(writer.total());
  expect(seen.length).toBeGreaterThan(kills);
  expect(rotations).toBeGreaterThan(0);
  const falls = seen.flatMap((value, i) =>
    i > 0 && value < seen[i - 1]! ? [`${seen[i - 1]} then ${value}`] : [],
  );
  expect(falls).toEqual([]);
});
