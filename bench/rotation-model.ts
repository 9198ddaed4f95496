/**
 * Plays seeds of the rotation model on all cores and prints the seeds that fail.
 *
 *   npm run bench -- rotation-model [SEEDS] [FROM] [KIND]
 *
 * Default: 10,000 seeds from 0 of every kind of world. KIND is the beginning of a kind's name, or `all`. PROCESSES says how
 * many processes play (default: one per core), and ROTATION_MODEL holds other options as JSON, such as `{"trace":true}`.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { kinds } from '../test/rotation-model/kinds.ts';
import { type ModelOptions, play, type Verdict } from '../test/rotation-model/play.ts';
import { cpuMs } from './figures.ts';

/** The number of failures that each process shows. */
const shownFailures = 10;

interface Totals {
  seeds: number;
  failed: number;
  lines: number;
  rotations: number;
  kills: number;
  cpuMs: number;
}

const noTotals = (): Totals => ({ seeds: 0, failed: 0, lines: 0, rotations: 0, kills: 0, cpuMs: 0 });

function add(totals: Totals, more: Totals): void {
  for (const key of Object.keys(totals) as (keyof Totals)[]) totals[key] += more[key];
}

const crashed = (seed: number, thrown: unknown): Verdict => ({
  seed,
  style: 'crash',
  faults: [String(thrown instanceof Error ? thrown.stack : thrown)],
  trace: [],
  rotations: 0,
  kills: 0,
  lines: 0,
});

const print = (text: string) => void process.stdout.write(`${text}\n`);

/** Plays every `step`th seed, prints failures, and at last its totals as one line of JSON. */
async function playPart(kind: string, options: ModelOptions, seeds: number[], step: number): Promise<void> {
  const totals = noTotals();
  const [from, end] = seeds as [number, number];
  for (let seed = from; seed < end; seed += step) {
    const verdict = await play(seed, options).catch((thrown: unknown) => crashed(seed, thrown));
    totals.seeds++;
    totals.lines += verdict.lines;
    totals.rotations += verdict.rotations;
    totals.kills += verdict.kills;
    for (const line of verdict.trace) print(line);
    if (verdict.faults.length === 0) continue;
    if (totals.failed++ < shownFailures)
      print(
        `${kind}, seed ${seed}, ${verdict.style}: ${verdict.faults
          .slice(0, 4)
          .join('; ')
          .slice(0, Number(process.env.MODEL_WIDTH ?? 200))}`,
      );
  }
  print(JSON.stringify({ ...totals, cpuMs: cpuMs() }));
}

function runPart(args: readonly string[], totals: Totals): Promise<void> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ROTATION_MODEL_PART: 'yes' },
  });
  createInterface(child.stdout).on('line', (line) => {
    if (line.startsWith('{')) add(totals, JSON.parse(line));
    else print(line);
  });
  return new Promise((resolve, reject) =>
    child.on('close', (status) =>
      status === 0 ? resolve() : reject(new Error(`a process ended with ${status}`)),
    ),
  );
}

async function playKind(kind: string, from: number, end: number): Promise<boolean> {
  const processes = Number(process.env.PROCESSES ?? availableParallelism());
  const totals = noTotals();
  const parts = Array.from({ length: processes }, (_, at) =>
    runPart([kind, String(from + at), String(end), String(processes)], totals),
  );
  await Promise.all(parts);
  const { seeds, failed, lines, rotations, kills } = totals;
  print(
    `${kind}: ${seeds} seeds from ${from}: ${failed} failed; ${lines} lines, ${rotations} rotations, ${kills} kills; ` +
      `${(totals.cpuMs / seeds).toFixed(1)} ms of CPU per seed`,
  );
  return failed === 0;
}

if (process.env.ROTATION_MODEL_PART) {
  const [kind, from, end, step] = process.argv.slice(2);
  const others: ModelOptions = JSON.parse(process.env.ROTATION_MODEL ?? '{}');
  const options = { ...kinds[kind as keyof typeof kinds], ...others };
  await playPart(kind!, options, [Number(from), Number(end)], Number(step));
} else {
  const [seeds = '10000', from = '0', wanted = 'all'] = process.argv.slice(2);
  const named = Object.keys(kinds).filter((kind) => wanted === 'all' || kind.startsWith(wanted));
  if (named.length === 0)
    throw new Error(`unknown kind: ${wanted}; one of: ${Object.keys(kinds).join('; ')}`);
  let isExact = true;
  for (const kind of named)
    isExact = (await playKind(kind, Number(from), Number(from) + Number(seeds))) && isExact;
  process.exitCode = isExact ? 0 : 1;
}
