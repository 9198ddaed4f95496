import { expect, test } from 'vitest';
import { type ModelOptions, play } from '../rotation-model.ts';

/** Seeds per case; ends earlier when the time is up. `npm run bench -- rotation-model SEEDS FROM` plays more. */
const seeds = Number(process.env.ROTATION_MODEL_SEEDS ?? 1_000);
const limitMs = Number(process.env.ROTATION_MODEL_SECONDS ?? 20) * 1000;

const copied = ['copytruncate', 'datedCopy'] as const;
const renamed = ['numbered', 'upwards', 'dated', 'links'] as const;
const cases: [string, ModelOptions][] = [
  ['renamed, linked', { compress: false, styles: renamed }],
  ['renamed and compressed', { compress: true, styles: renamed }],
  ['copied and truncated', { compress: false, styles: copied }],
  ['copied, truncated and compressed', { compress: true, styles: copied }],
];

test.each(cases)(
  'rotations between any two calls: %s',
  async (_, options) => {
    const endMs = performance.now() + limitMs;
    const failed: string[] = [];
    for (let seed = 0; seed < seeds && performance.now() < endMs; seed++) {
      const { faults, style } = await play(seed, options);
      if (faults.length > 0) failed.push(`seed ${seed}, ${style}: ${faults.join('; ')}`);
    }
    expect(failed).toEqual([]);
  },
  limitMs + 60_000,
);
