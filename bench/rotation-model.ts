/**
 * Plays many seeds of the rotation model and prints the ones that fail.
 * `npm run bench -- rotation-model [SEEDS] [FROM]`, default 10,000 from 0.
 */
import { type ModelOptions, play } from '../test/rotation-model.ts';

const seeds = Number(process.argv[2] ?? 10_000);
const from = Number(process.argv[3] ?? 0);
const options: ModelOptions = JSON.parse(process.env.ROTATION_MODEL ?? '{}');
const began = performance.now();
let [rotations, kills, lines, failed] = [0, 0, 0, 0];
const byStyle = new Map<string, number>();

for (let seed = from; seed < from + seeds; seed++) {
  const verdict = await play(seed, options).catch((thrown: unknown) => ({
    seed,
    style: 'crash',
    faults: [String(thrown instanceof Error ? thrown.stack : thrown)],
    trace: [],
    rotations: 0,
    kills: 0,
    lines: 0,
  }));
  rotations += verdict.rotations;
  kills += verdict.kills;
  lines += verdict.lines;
  if (verdict.faults.length === 0) continue;
  failed++;
  byStyle.set(verdict.style, (byStyle.get(verdict.style) ?? 0) + 1);
  if (failed <= 20)
    process.stdout.write(`seed ${seed} ${verdict.style}: ${verdict.faults.slice(0, 6).join('; ')}\n`);
  if (options.trace) process.stdout.write(`${verdict.trace.join('\n')}\n`);
}
for (const [style, n] of [...byStyle].sort()) process.stdout.write(`${style}: ${n} failed\n`);
process.stdout.write(
  `${seeds} seeds from ${from}: ${failed} failed; ${lines} lines, ${rotations} rotations, ${kills} kills, ` +
    `${((performance.now() - began) / 1000).toFixed(0)} s\n`,
);
process.exitCode = failed > 0 ? 1 : 0;
