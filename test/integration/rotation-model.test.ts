import { expect, test } from 'vitest';
import { type ModelOptions, play } from '../rotation-model.ts';

/** Seeds per case; ends earlier when the time is up. `npm run bench -- rotation-model SEEDS FROM` plays more. */
const seeds = Number(process.env.ROTATION_MODEL_SEEDS ?? 150);
const limitMs = Number(process.env.ROTATION_MODEL_SECONDS ?? 30) * 1000;

const cases: [string, ModelOptions][] = [
  ['renamed, linked', { compress: false, styles: ['numbered', 'upwards', 'dated', 'links'] }],
  ['copied and truncated', { compress: false, styles: ['copytruncate', 'datedCopy'] }],
  ['renamed and compressed', { compress: true, styles: ['numbered', 'upwards', 'dated'] }],
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
