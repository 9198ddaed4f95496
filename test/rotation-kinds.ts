import { expect, test } from 'vitest';
import { type Kind, kinds } from './rotation-model/kinds.ts';
import { play } from './rotation-model/play.ts';
import { bySize } from './size.ts';

const seeds = bySize({ short: 50, long: 5_000, nightly: 1_000_000 });
/** A run of fewer seeds fails, however slow the machine is. */
const fewestSeeds = Math.min(seeds, 2_500);
/** The CPU time after which a kind ends: several times what an idle machine needs for the seeds of a long run. */
const limitSeconds = bySize({ short: 240, long: 240, nightly: 7200 });

const cpuSeconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

/**
 * Plays seeds from 0 until the wanted number is reached, or the CPU time is used up; `npm run bench -- rotation-model SEEDS FROM`
 * plays others. Each kind has a separate test file, so that they run side by side.
 */
export function playKind(kind: Kind): void {
  test(`rotations between any two calls, ${seeds} seeds: ${kind}`, { timeout: 0 }, async ({ annotate }) => {
    const end = cpuSeconds() + limitSeconds;
    const failed: string[] = [];
    let played = 0;
    for (; played < seeds && cpuSeconds() < end; played++) {
      const { faults, style } = await play(played, kinds[kind]);
      if (faults.length > 0) failed.push(`seed ${played}, ${style}: ${faults.join('; ')}`);
    }
    await annotate(`${played} of ${seeds} seeds played`);
    expect(failed).toEqual([]);
    expect(played, 'seeds played within the CPU time').toBeGreaterThanOrEqual(fewestSeeds);
  });
}
