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

type Read = Awaited<ReturnType<ReloadsDeps['load']>>;
const none = { faults: [], warnings: [], findings: [], advice: [], discovered: [], files: [], watched: {} };
const empty: Read = { config: {} as AgentConfig, ...none };

/** Reloads, by default of an empty configuration, whose parts are built with `prepare`. */
function reloadsOf(prepare: ReloadsDeps['prepare'], load: ReloadsDeps['load'] = async () => empty) {
  const self = createSelfMetrics();
  const { log, entries } = keptLog();
  const clock = manualClock();
  const read: Read[] = [];
  const reloads = createReloads({ load, loaded: (one) => void read.push(one), prepare, self, clock, log });
  const value = async (metric: 'reloadSuccessful' | 'reloadSuccessTimestamp') =>
    (await self[metric].get()).values[0]?.value;
  return { reloads, self, entries, clock, read, value };
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

test('a part that stays as it is has nothing to swap', async () => {
  const part = { swap() {}, discard() {} };
  expect(await prepareAll([async () => undefined, async () => part, async () => undefined])).toEqual([part]);
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

const fault = (line: number) =>
  ({ where: `agent.yaml:${line}:1: roles`, what: 'not a list' }) as Read['faults'][number];

test.each([
  ['one fault', [fault(1)], /agent\.yaml:1:1.*not a list$/],
  ['five faults', [1, 2, 3, 4, 5].map(fault), /agent\.yaml:1:1.* \| .*agent\.yaml:5:1[^|]*$/],
  ['seven faults', [1, 2, 3, 4, 5, 6, 7].map(fault), /agent\.yaml:5:1[^|]* \| and 2 more$/],
])(
  'a configuration with %s is refused and changes nothing; the next one that is good counts',
  async (_, faults, message) => {
    const reads: Read[] = [{ ...empty, faults }, empty];
    let prepared = 0;
    const { reloads, entries, clock, read, value } = reloadsOf(
      async () => {
        prepared++;
        return [];
      },
      async () => reads.shift()!,
    );
    const startedAt = await value('reloadSuccessTimestamp');
    expect([await value('reloadSuccessful'), startedAt]).toEqual([1, clock.nowMs() / 1000]);
    clock.advance(5000);
    reloads.ask();
    await until('it is refused', () => entries.some(({ msg }) => msg.includes('refused')) || undefined);
    expect(reloads.error).toMatch(message);
    expect([prepared, await value('reloadSuccessful'), await value('reloadSuccessTimestamp')]).toEqual([
      0,
      0,
      startedAt,
    ]);
    // Nevertheless it names the files to watch.
    expect(read).toHaveLength(1);
    reloads.ask();
    await until(
      'it is taken',
      () => entries.some(({ msg }) => msg === 'configuration reloaded') || undefined,
    );
    expect(reloads.error).toBeUndefined();
    expect([prepared, await value('reloadSuccessful'), await value('reloadSuccessTimestamp')]).toEqual([
      1,
      1,
      clock.nowMs() / 1000,
    ]);
  },
);

test('a configuration without one, and one that cannot be read', async () => {
  const reads = [
    async () => ({ ...empty, config: undefined }),
    () => Promise.reject(new Error('no process')),
  ];
  const { reloads, entries } = reloadsOf(
    async () => [],
    () => reads.shift()!(),
  );
  for (const count of [1, 2]) {
    reloads.ask();
    await until('it is refused', () => entries.length === count || undefined);
  }
  expect(reloads.error).toBe('no process');
  expect(entries.every(({ msg }) => msg.includes('refused'))).toBe(true);
});

test('requests while one waits are one; those while one is read are another', async () => {
  let end = () => {};
  let reads = 0;
  const { reloads, entries } = reloadsOf(
    async () => [],
    () => {
      reads++;
      return new Promise((resolve) => {
        end = () => resolve(empty);
      });
    },
  );
  reloads.ask();
  reloads.ask();
  await until('the first is read', () => reads === 1 || undefined);
  reloads.ask();
  reloads.ask();
  end();
  await until('the second is read', () => reads === 2 || undefined);
  end();
  await until('both are over', () => entries.length === 2 || undefined);
  expect(reads).toBe(2);
});

test('a stop while the files are read drops what was read, also if it is wrong, and what waits', async () => {
  for (const result of [empty, { ...empty, faults: [fault(1)] }, undefined]) {
    let end = () => {};
    let prepared = 0;
    let reads = 0;
    const { reloads, entries, read } = reloadsOf(
      async () => {
        prepared++;
        return [];
      },
      () => {
        reads++;
        return new Promise((resolve, reject) => {
          end = () => (result ? resolve(result) : reject(new Error('no process')));
        });
      },
    );
    reloads.ask();
    await until('the files are read', () => reads === 1 || undefined);
    reloads.ask();
    await reloads.stop();
    end();
    await new Promise((resolve) => setImmediate(resolve));
    expect({ prepared, reads, entries, read, error: reloads.error }).toEqual({
      ...{ prepared: 0, reads: 1, entries: [], read: [], error: undefined },
    });
  }
});
