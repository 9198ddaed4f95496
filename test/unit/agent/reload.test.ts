import { expect, test, vi } from 'vitest';
import type { AgentConfig } from '../../../src/agent/config/types.ts';
import {
  createReloads,
  type Prepare,
  type Prepared,
  prepareAll,
  type ReloadsDeps,
} from '../../../src/agent/reload.ts';
import { createSelfMetrics } from '../../../src/agent/self-metrics.ts';
import { manualClock } from '../../clock.ts';
import { keptLog } from '../../fault/state/bed.ts';
import { until } from '../../until.ts';

/** Reloads of an empty configuration whose parts are built like this. */
function reloadsOf(prepare: ReloadsDeps['prepare']) {
  const self = createSelfMetrics();
  const { log, entries } = keptLog();
  const config = {} as AgentConfig;
  const none = { faults: [], warnings: [], findings: [], advice: [], discovered: [], files: [], watched: {} };
  const load = async () => ({ config, ...none });
  const reloads = createReloads({ load, loaded: () => {}, prepare, self, clock: manualClock(), log });
  return { reloads, self, entries };
}

test('a part that cannot be built: those before it are given back, the last one first', async () => {
  const names = ['log', 'sources', 'listeners', 'reporters'];
  for (const faulty of names) {
    const events: string[] = [];
    const parts = names.map(
      (name): Prepare =>
        async () => {
          if (name === faulty) throw new Error(`no ${name}`);
          events.push(`+${name}`);
          return {
            swap: () => void events.push(`swap ${name}`),
            discard: () => void events.push(`-${name}`),
          };
        },
    );
    await expect(prepareAll(parts)).rejects.toThrow(`no ${faulty}`);
    const built = names.slice(0, names.indexOf(faulty));
    expect(events).toEqual([
      ...built.map((name) => `+${name}`),
      ...built.reverse().map((name) => `-${name}`),
    ]);
  }
});

test('a stop while the parts are built: they are given back, the last one first, and none is swapped', async () => {
  const events: string[] = [];
  const part = (name: string) => ({
    swap: () => void events.push(`swap ${name}`),
    discard: () => void events.push(`-${name}`),
  });
  let built = (_parts: Prepared[]) => {};
  const { reloads } = reloadsOf(
    () =>
      new Promise<Prepared[]>((resolve) => {
        built = resolve;
        events.push('building');
      }),
  );
  reloads.ask();
  await until('the parts are being built', () => events.length === 1);
  const stopped = reloads.stop();
  built([part('sources'), part('listeners')]);
  await stopped;
  expect(events).toEqual(['building', '-listeners', '-sources']);
});

test('a swap that throws all the same: the other parts are swapped, and the reload does not count as successful', async () => {
  const swapped: string[] = [];
  const part = (name: string, isFaulty = false) => ({
    swap() {
      if (isFaulty) throw new Error('broken');
      swapped.push(name);
    },
    discard: () => {},
  });
  const { reloads, self, entries } = reloadsOf(async () => [
    part('sources'),
    part('listeners', true),
    part('old listeners'),
  ]);
  reloads.ask();
  await vi.waitFor(() => expect(entries.some(({ msg }) => msg.includes('failed to start'))).toBe(true));
  await reloads.stop();
  expect(swapped).toEqual(['sources', 'old listeners']);
  expect(reloads.error).toBe('broken');
  expect((await self.reloadSuccessful.get()).values[0]?.value).toBe(0);
});
