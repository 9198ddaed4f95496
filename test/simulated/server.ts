import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Prometheus, startPrometheus } from '../e2e/prometheus.ts';
import { writeWorld } from './world.ts';

/** A real Prometheus that contains the simulated hour and scrapes nothing. */
export async function startSimulated(directory: string, crowdSize = 0): Promise<Prometheus> {
  const text = join(directory, 'world.txt');
  writeWorld(text, crowdSize);
  const blocks = join(directory, 'tsdb');
  mkdirSync(blocks);
  const made = spawnSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', text, blocks], {
    encoding: 'utf8',
  });
  if (made.status !== 0) throw new Error(`promtool made no blocks: ${made.stdout}${made.stderr}`);
  return await startPrometheus(directory, {});
}
