import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createBackoff, startDelivery } from '../../../src/reporters/hosted/delivery.ts';
import type { PostFailure, PostResult } from '../../../src/reporters/hosted/post.ts';
import type { Batch } from '../../../src/reporters/hosted/protocol.ts';
import type { QueuedBatch } from '../../../src/reporters/hosted/queue/queue.ts';
import { type ManualClock, manualClock } from '../../clock.ts';
import { runs } from '../../size.ts';
import { until } from '../../until.ts';

/** A batch of points that are distinguished by their number. */
const batchOf = (values: readonly number[]) => ({ points: values.length, values }) as unknown as Batch;
const valuesOf = (batch: Batch) => (batch as unknown as { values: readonly number[] }).values;

type Answer = 'taken' | 'refused' | PostFailure;
const failure = (over: Partial<PostFailure> = {}): PostFailure => ({
  ...{ reason: 'server_error', cause: 'batch', isTransient: false },
  ...over,
});
const busy = failure({ isTransient: true });
const away = failure({ reason: 'refused', cause: 'receiver' });

/** Limits of requests to a receiver and to the queue: an endless loop becomes a failure of the test. */
const [mostRequests, mostPeeks] = [4000, 40_000];

/** A delivery between a queue and a receiver that answers with `answer`. */
function deliver(batches: readonly number[][], answer: (values: readonly number[]) => Answer) {
  const clock = manualClock();
  const queued = batches.map((values) => ({ batch: batchOf(values), entry: {} }) as unknown as QueuedBatch);
  const requests: (readonly number[])[] = [];
  const taken: number[] = [];
  const drops: [reason: string, points: number | undefined][] = [];
  const refused: number[] = [];
  const released: number[] = [];
  let peeks = 0;
  const ask = (values: readonly number[]): Answer => {
    requests.push(values);
    return requests.length > mostRequests ? 'taken' : answer(values);
  };
  const delivery = startDelivery({
    queue: {
      async peek(place) {
        if (++peeks > mostPeeks) throw new Error('a loop without an end');
        const found = queued[place];
        await nextTurn();
        return found;
      },
      remove: async (one) => void queued.splice(queued.indexOf(one), 1),
      release: () => void released.push(requests.length),
    },
    post: {
      async send(pieces): Promise<PostResult> {
        const left = [...pieces];
        let acceptedAny = false;
        while (left.length > 0) {
          const given = ask(valuesOf(left[0]!));
          if (typeof given === 'object') return { pieces: left, acceptedAny, failure: given };
          const [done] = left.splice(0, 1);
          if (given === 'refused') continue;
          acceptedAny = true;
          taken.push(...valuesOf(done!));
        }
        return { pieces: left, acceptedAny };
      },
      async split(batch) {
        const values = valuesOf(batch);
        const middle = Math.ceil(values.length / 2);
        return values.length < 2 ? [] : [values.slice(0, middle), values.slice(middle)].map(batchOf);
      },
      probe: async (point) => ask(valuesOf(point)) === 'taken',
    },
    limits: {
      refused(points) {
        refused.push(points);
        return 'split';
      },
    },
    backoff: createBackoff(() => 0.5),
    clock,
    drops: { count: (_, reason, points) => void drops.push([reason, points]) },
  });
  const append = (values: number[]) => {
    queued.push({ batch: batchOf(values), entry: {} } as unknown as QueuedBatch);
    delivery.wake();
  };
  onTestFinished(async () => {
    answer = () => 'taken';
    await delivery.end();
  });
  return { clock, queued, requests, taken, drops, refused, released, delivery, append };
}

/** Lets everything happen that needs no time. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn();
}

/** Lets time pass whenever nothing else happens, until `done`; returns how long the waits were. */
async function pass(clock: ManualClock, done: () => boolean): Promise<number[]> {
  const waits: number[] = [];
  for (let turn = 0; !done() && turn < 3 * mostRequests; turn++) {
    await nextTurn();
    if (clock.waiting === 0) continue;
    const before = clock.monotonicMs();
    for (let s = 0; s < 700 && clock.waiting > 0; s++) clock.advance(1000);
    waits.push(clock.monotonicMs() - before);
  }
  return waits;
}

describe('what the receiver fails at', () => {
  test.each([
    ['busy with one point', [[1, 666, 3], [4]], (values: readonly number[]) => values.includes(666), busy],
    ['away', [[1, 2, 3], [4]], () => true, away],
    ['failing at everything', [[1, 2, 3], [4]], () => true, failure()],
    ['failing at a batch of one point, with none behind it', [[666]], () => true, failure()],
  ])('nothing is dropped while the receiver is %s', async (_, batches, fails, how) => {
    let isOver = false;
    const run = deliver(batches, (values) => (!isOver && fails(values) ? how : 'taken'));
    await pass(run.clock, () => run.requests.length > 100);
    expect([run.drops, run.queued.length > 0]).toEqual([[], true]);
    isOver = true;
    await pass(run.clock, () => run.queued.length === 0);
    expect([...run.taken].sort((a, b) => a - b)).toEqual(batches.flat().sort((a, b) => a - b));
  });

  test('a receiver that is away is not asked with other points', async () => {
    const run = deliver([[1, 2], [3]], () => away);
    await pass(run.clock, () => run.requests.length >= 20);
    expect(new Set(run.requests.map(String))).toEqual(new Set(['1,2']));
    expect(run.refused).toEqual([]);
  });

  test('the fifth failure of a batch is the first after which a single point of it is tried', async () => {
    const run = deliver([[1, 2, 3, 4], [5]], (values) => (values.length > 1 ? failure() : 'taken'));
    await pass(run.clock, () => run.queued.length === 0);
    expect(run.requests.map(({ length }) => length).slice(0, 7)).toEqual([4, 4, 4, 4, 4, 1, 2]);
    // Only failures while the batch is known to be the cause make later requests smaller.
    expect(run.refused.every((points) => points > 1)).toBe(true);
    expect(run.refused.length).toBeGreaterThan(0);
  });

  test('after a batch that was the cause the next one is not tried five times, until one goes through at once', async () => {
    const fails = (values: readonly number[]) => values.length > 1 && values[0]! < 20;
    const run = deliver(
      [
        [1, 2],
        [11, 12],
        [21, 22],
        [13, 14],
      ],
      (values) => (fails(values) ? failure() : 'taken'),
    );
    await pass(run.clock, () => run.queued.length === 0);
    const triesOf = (values: number[]) => run.requests.filter((one) => String(one) === String(values)).length;
    expect(
      [
        [1, 2],
        [11, 12],
        [21, 22],
        [13, 14],
      ].map(triesOf),
    ).toEqual([5, 1, 1, 5]);
  });

  test('a point is dropped after three failures in a row, not before', async () => {
    const run = deliver([[666], [2]], (values) => (values.includes(666) ? failure() : 'taken'));
    await pass(run.clock, () => run.queued.length === 0);
    // There are five requests until the batch may be the cause, then three more.
    expect(run.requests.filter((values) => values.includes(666))).toHaveLength(5 + 3);
    expect(run.drops).toEqual([['rejected', 1]]);
    expect(run.taken).toEqual([2]);
  });
});

describe('the pace', () => {
  test('batches go one after the other without a wait', async () => {
    const run = deliver([[1], [2], [3]], () => 'taken');
    await settled();
    expect([run.taken, run.clock.monotonicMs(), run.clock.waiting]).toEqual([[1, 2, 3], 0, 0]);
  });

  test('what is appended later is sent at once', async () => {
    const run = deliver([], () => 'taken');
    await settled();
    run.append([1]);
    await settled();
    run.append([2]);
    await settled();
    expect([run.taken, run.clock.monotonicMs()]).toEqual([[1, 2], 0]);
  });

  test('what is appended while the queue is found empty is not left behind', async () => {
    const run = deliver([], () => 'taken');
    run.append([1]);
    await settled();
    expect([run.taken, run.clock.monotonicMs()]).toEqual([[1], 0]);
  });

  test('what is appended during a wait does not end it, and the batch is given back meanwhile', async () => {
    let isOver = false;
    const run = deliver([[1]], () => (isOver ? 'taken' : away));
    await settled();
    expect(run.released).toEqual([1]);
    isOver = true;
    run.append([2]);
    run.clock.advance(249);
    await settled();
    expect(run.requests).toHaveLength(1);
    run.clock.advance(1);
    await settled();
    expect(run.taken).toEqual([1, 2]);
  });

  test.each<[string, Answer]>([
    ['accepts', 'taken'],
    ['refuses for good', 'refused'],
  ])('after a receiver %s a batch, the next failure waits as briefly as a first one', async (_, answer) => {
    const answers: Answer[] = [away, away, away, answer, away];
    const run = deliver([[1], [2]], () => answers.shift() ?? 'taken');
    const waits = await pass(run.clock, () => run.queued.length === 0);
    expect(waits).toEqual([1000, 1000, 1000, 1000]);
    const exact = deliver(
      [[1], [2]],
      () => [away, away, away, answer, away][exact.requests.length - 1] ?? 'taken',
    );
    for (const ms of [250, 500, 1000, 250]) {
      await settled();
      const { length } = exact.requests;
      exact.clock.advance(ms - 1);
      await settled();
      expect(exact.requests).toHaveLength(length);
      exact.clock.advance(1);
      await settled();
      expect(exact.requests.length).toBeGreaterThan(length);
    }
  });

  test.each<[string, Partial<PostFailure>, number]>([
    ['a smaller request is sent after five seconds at most', { cause: 'size' }, 5000],
    ['it, too, waits as long as the receiver asks for', { cause: 'size', retryAfterMs: 9000 }, 9000 + 30_000],
    ['a receiver that is away is asked a minute later at most', { cause: 'receiver' }, 30_000],
    ['it waits as long as it asks for', { cause: 'receiver', retryAfterMs: 9000 }, 9000 + 30_000],
  ])('%s', async (_, how, waitMs) => {
    const run = deliver([[1, 2], [3]], () => failure(how));
    await pass(run.clock, () => run.requests.length >= 10);
    await settled();
    const { length } = run.requests;
    run.clock.advance(waitMs - 1);
    await settled();
    expect(run.requests).toHaveLength(length);
    run.clock.advance(1);
    await settled();
    expect(run.requests).toHaveLength(length + 1);
  });
});

describe('the end', () => {
  test('with nothing queued comes at once', async () => {
    const run = deliver([], () => 'taken');
    await settled();
    await run.delivery.end();
    expect(run.requests).toEqual([]);
  });

  test('sends what is queued, during a wait, too', async () => {
    let isOver = false;
    const run = deliver([[1], [2]], () => (isOver ? 'taken' : away));
    await settled();
    isOver = true;
    run.queued.push({ batch: batchOf([3]), entry: {} } as unknown as QueuedBatch);
    await run.delivery.end();
    expect([run.taken, run.queued, run.clock.monotonicMs()]).toEqual([[1, 2, 3], [], 0]);
  });

  test('comes with the first request that fails after it began', async () => {
    const run = deliver([[1], [2]], () => away);
    await settled();
    await run.delivery.end();
    expect([run.requests.length, run.taken, run.queued.length]).toEqual([2, [], 2]);
  });

  test('sends what was appended while the queue was found empty', async () => {
    const run = deliver([], () => 'taken');
    await settled();
    run.queued.push({ batch: batchOf([1]), entry: {} } as unknown as QueuedBatch);
    const ended = run.delivery.end();
    await until('it has ended', () => run.taken.length === 1);
    await ended;
  });

  test('sends what is appended while the queue is being looked at, and waits for nothing more', async () => {
    const run = deliver([], () => 'taken');
    run.queued.push({ batch: batchOf([1]), entry: {} } as unknown as QueuedBatch);
    let hasEnded = false;
    void run.delivery.end().then(() => {
      hasEnded = true;
    });
    await settled();
    expect([run.taken, hasEnded]).toEqual([[1], true]);
  });

  test('sends once more what failed in a request from before it', async () => {
    let ended: Promise<void> | undefined;
    const run = deliver([[1]], () => {
      if (ended) return 'taken';
      ended = run.delivery.end();
      return away;
    });
    await until('it begins', () => ended !== undefined);
    await ended;
    expect([run.requests.length, run.taken, run.clock.monotonicMs()]).toEqual([2, [1], 0]);
  });

  test('during the search for the cause waits no longer, and looks no further', async () => {
    let ended: Promise<void> | undefined;
    const run = deliver([[1, 2]], (values) => {
      if (values.length === 1) ended ??= run.delivery.end();
      return failure();
    });
    await settled();
    for (; ended === undefined; await settled()) run.clock.advance(60_000);
    await ended;
    // These are the last point, the first one, and one of the two.
    expect(run.requests.map(String)).toEqual([...Array(5).fill('1,2'), '2', '1', '2', '1,2']);
  });
});

describe('each point arrives, whatever the receiver fails at', () => {
  /** Batches of points, of which the receiver fails at some, but never at all points of a batch; the last batch is healthy. */
  const world = fc.record({
    sizes: fc.array(
      fc.record({
        size: fc.integer({ min: 2, max: 12 }),
        poison: fc.uniqueArray(fc.nat(11), { maxLength: 4 }),
      }),
      { minLength: 1, maxLength: 6 },
    ),
    failing: fc.constantFrom(failure(), failure({ reason: 'reset' })),
    /** The number of requests at the beginning at which the receiver always fails. */
    outage: fc.constantFrom(0, 0, 7, 40),
    /** If a request has more points than this, the receiver answers that it is busy. */
    most: fc.constantFrom(1, 5, 100),
  });

  test('but those at which it fails for good: they are dropped and counted', async () => {
    await fc.assert(
      fc.asyncProperty(world, async ({ sizes, failing, outage, most }) => {
        let next = 0;
        const batches = sizes.map(({ size }) => Array.from({ length: size }, () => next++));
        const poisoned = sizes.flatMap(({ poison, size }, at) =>
          poison.slice(0, size - 1).flatMap((place) => batches[at]![place] ?? []),
        );
        batches.push([next++]);
        const isPoison = (value: number) => poisoned.includes(value);
        let asked = 0;
        const run = deliver(batches, (values) => {
          asked += 1;
          if (asked <= outage) return failing;
          if (values.some(isPoison)) return failing;
          return values.length > most ? busy : 'taken';
        });
        await pass(run.clock, () => run.queued.length === 0);
        expect(run.requests.length).toBeLessThan(mostRequests);
        const all = Array.from({ length: next }, (_, value) => value);
        // Each point arrives once: a point that is sent alone is not sent again with its batch.
        expect([...run.taken].sort((a, b) => a - b)).toEqual(all.filter((value) => !isPoison(value)));
        // The points of one place are one series: their order is that of the batches.
        for (let place = 0; place < 12; place++) {
          const series = batches.flatMap((batch) => batch[place] ?? []).filter((value) => !isPoison(value));
          expect(run.taken.filter((value) => series.includes(value))).toEqual(series);
        }
        expect(run.drops).toEqual(poisoned.map(() => ['rejected', 1]));
      }),
      { numRuns: runs(200) },
    );
  });
});
