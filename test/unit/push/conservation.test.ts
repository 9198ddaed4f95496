import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TagFormat } from '../../../src/reporters/block.ts';
import { inMemory, type PushedFamily, type PushRig, startPush, systemError } from '../../push.ts';
import { aggregate } from '../../push-lines.ts';
import { runs } from '../../size.ts';

/** A counted thing: where it is, and what has happened to it according to the test's own books. */
interface Counted {
  readonly id: string;
  readonly life: 'durable' | 'process' | 'role';
  total: number;
  startMs: number;
  shown: boolean;
  /** The increases that ever happened while a flush could still see them. */
  increases: number;
  /** The increases since the last flush. */
  unseen: number;
}

interface World {
  nowMs: number;
  readonly tagFormat: TagFormat;
  readonly counted: readonly Counted[];
  readonly received: string[];
  /** The errors of the next sends. */
  readonly fails: { next: (string | undefined)[] };
  rig: PushRig;
}

const make = (id: string, life: Counted['life']): Counted => ({
  id,
  life,
  total: 0,
  startMs: 1,
  shown: true,
  increases: 0,
  unseen: 0,
});

/** Two series of each thing; bucket 0.5 of the histogram gets every second observation. */
function viewOf({ counted }: World): PushedFamily[] {
  const shown = counted.filter((one) => one.shown);
  const series = (one: Counted, numbers: number[]) => ({
    labels: { id: one.id, life: one.life },
    service: one.life,
    startMs: one.startMs,
    numbers,
  });
  const whole = (one: Counted) => [Math.floor(one.total / 2), one.total, one.total / 4, one.total];
  return [
    { name: 'n', kind: 'counter', series: shown.map((one) => series(one, [one.total])) },
    {
      name: 'h',
      kind: 'histogram',
      series: shown.map((one) => ({ ...series(one, whole(one)), bounds: ['0.5'] })),
    },
  ];
}

type Step =
  | { do: 'count'; who: number; by: number }
  | { do: 'flush'; fails: readonly ('ECONNREFUSED' | 'ENOBUFS' | 'EMSGSIZE' | undefined)[] }
  | { do: 'restart' }
  | { do: 'role restarts'; who: number }
  | { do: 'hide' | 'show'; who: number };

const who = fc.nat(5);
const failure = fc.constantFrom(undefined, undefined, 'ECONNREFUSED', 'ENOBUFS', 'EMSGSIZE');
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('count'), who, by: fc.nat(9) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('flush'), fails: fc.array(failure, { maxLength: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('role restarts'), who }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('hide', 'show'), who }) },
) as fc.Arbitrary<Step>;

type Lasting = Omit<World, 'rig'>;

function start(world: Lasting, section?: Uint8Array): Promise<PushRig> {
  const open = inMemory((datagram) => {
    const code = world.fails.next.shift();
    if (code) throw systemError(code);
    world.received.push(...datagram.split('\n'));
  });
  return startPush(
    { tagFormat: world.tagFormat, flushBytes: 120, instance: 'i' },
    { open, section, sinceMs: 1, hasExternalTotals: ({ service }) => service === 'role' },
  );
}

async function newWorld(tagFormat: TagFormat): Promise<World> {
  const lives = ['durable', 'durable', 'process', 'process', 'role', 'role'] as const;
  const counted = lives.map((life, i) => make(`${i}`, life));
  const lasting: Lasting = { nowMs: 1, tagFormat, counted, received: [], fails: { next: [] } };
  return { ...lasting, rig: await start(lasting) };
}

async function flush(world: World): Promise<void> {
  world.rig.show(viewOf(world));
  await world.rig.flush();
  for (const one of world.counted) {
    if (!one.shown) continue;
    one.increases += one.unseen;
    one.unseen = 0;
  }
}

/** Applies a step to the world; the test keeps the books and does not query the reporter. */
async function take(world: World, step: Step): Promise<void> {
  const { counted } = world;
  world.nowMs += 1;
  if (step.do === 'flush') {
    world.fails.next = [...step.fails];
    await flush(world);
    world.fails.next = [];
  } else if (step.do === 'restart') {
    await restart(world);
  } else if (step.do === 'count') {
    counted[step.who]!.total += step.by;
    counted[step.who]!.unseen += step.by;
  } else if (step.do === 'role restarts') {
    const role = counted[step.who]!;
    if (role.life !== 'role' || !role.shown) return;
    await flush(world);
    if (role.total > 0) Object.assign(role, { total: 0, startMs: world.nowMs, unseen: 0 });
    await flush(world);
  } else if (counted[step.who]!.life !== 'process') {
    counted[step.who]!.shown = step.do === 'show';
  }
}

/** An orderly stop, then the section of the last commit; what only the process had counted is gone. */
async function restart(world: World): Promise<void> {
  await flush(world);
  await world.rig.stop();
  world.rig = await start(world, world.rig.freeze());
  for (const one of world.counted.filter(({ life }) => life === 'process')) {
    Object.assign(one, { total: 0, startMs: world.nowMs, unseen: 0, shown: true });
  }
}

/** What an aggregator must have at the end; buckets are checked separately. */
function expectedOf({ counted, tagFormat }: World): Record<string, number> {
  const expected: Record<string, number> = {};
  const add = (name: string, one: Counted, value: number) => {
    const tags = Object.entries({ id: one.id, instance: 'i', life: one.life });
    const key = JSON.stringify(tagFormat === 'none' ? [name] : [name, ...tags]);
    if (value > 0) expected[key] = (expected[key] ?? 0) + value;
  };
  for (const one of counted) {
    add('n', one, one.increases);
    add('h_count', one, one.increases);
    add('h_sum', one, one.increases / 4);
  }
  return expected;
}

test.each<TagFormat>(['suffix', 'dogstatsd', 'influx', 'none'])(
  '%s: the received deltas are the totals, whatever fails and restarts',
  async (tagFormat) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const world = await newWorld(tagFormat);
        await flush(world);
        for (const one of steps) await take(world, one);
        for (const one of world.counted) one.shown = true;
        await flush(world);
        await world.rig.stop();
        const sums = aggregate(world.received, tagFormat);
        const counts = [...sums].filter(([key]) => !key.includes('h_bucket'));
        expect(Object.fromEntries(counts)).toEqual(expectedOf(world));
        const infinite = [...sums].filter(([key]) => key.includes('+Inf')).reduce((sum, [, n]) => sum + n, 0);
        expect(infinite).toBe(world.counted.reduce((sum, one) => sum + one.increases, 0));
      }),
      { numRuns: runs(40) },
    );
  },
);

test('killed at any moment: never more than was counted, and what comes after arrives whole', async () => {
  const moments = ['before commit', 'before sending', 'while sending', 'after'] as const;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...moments), fc.nat(9), fc.nat(9)), { maxLength: 8 }),
      async (kills) => {
        const received: string[] = [];
        let section: Uint8Array | undefined;
        let total = 0;
        let mayBeLost = 0;
        for (const [moment, before, after] of [...kills, ['after', 3, 4] as const]) {
          let isDead = false;
          let sends = 0;
          const open = inMemory((datagram) => {
            sends += 1;
            if (isDead || moment === 'before sending' || (moment === 'while sending' && sends > 1))
              isDead = true;
            else received.push(...datagram.split('\n'));
          });
          const rig = await startPush({ flushBytes: 64, tagFormat: 'none' }, { open, sinceMs: 0, section });
          const show = () => {
            rig.show([
              { name: 'a', kind: 'counter', series: [{ numbers: [total] }] },
              { name: 'b', kind: 'counter', series: [{ labels: { x: 'x'.repeat(40) }, numbers: [total] }] },
              { name: 'c'.repeat(50), kind: 'counter', series: [{ numbers: [total] }] },
            ]);
          };
          total += before;
          show();
          if (moment === 'before commit') {
            // The kill comes first: the next start reads the file from before.
            isDead = true;
            await rig.flush();
            continue;
          }
          await rig.flush();
          section = rig.committed() ?? section;
          if (moment !== 'after') mayBeLost = total;
          if (moment === 'after') {
            total += after;
            show();
            await rig.flush();
            section = rig.committed() ?? section;
          }
        }
        for (const sum of aggregate(received, 'none').values()) {
          expect(sum).toBeLessThanOrEqual(total);
          expect(sum).toBeGreaterThanOrEqual(total - mayBeLost);
        }
      },
    ),
    { numRuns: runs(60) },
  );
});
