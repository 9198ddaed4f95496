import { expect, test } from 'vitest';
import { type ModelOptions, play } from '../rotation-model.ts';

/**
 * Seeds per case, and the CPU time after which a case ends earlier: a busy machine plays as many as an idle one.
 * `npm run bench -- rotation-model SEEDS FROM` plays more.
 */
const seeds = Number(process.env.ROTATION_MODEL_SEEDS ?? 1_000);
const limitSeconds = Number(process.env.ROTATION_MODEL_SECONDS ?? 20);

const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

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
    const end = cpuSeconds() + limitSeconds;
    const failed: string[] = [];
    for (let seed = 0; seed < seeds && cpuSeconds() < end; seed++) {
      const { faults, style } = await play(seed, options);
      if (faults.length > 0) failed.push(`seed ${seed}, ${style}: ${faults.join('; ')}`);
    }
    expect(failed).toEqual([]);
  },
  60_000 + limitSeconds * 20_000,
);
