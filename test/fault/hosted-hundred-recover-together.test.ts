import { expect, test } from 'vitest';
import { openBed, receiverForEachTest, status } from '../hosted.ts';
import { until } from '../until.ts';

const receiver = receiverForEachTest();

test('a hundred agents that lost their receiver together do not come back together', async () => {
  receiver.reply(status(503, { 'retry-after': '5' }));
  const beds = [];
  for (let agent = 0; agent < 100; agent++) {
    // Each agent has a fixed series of numbers, so that a failure can be repeated.
    let seed = agent + 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    beds.push(await openBed(receiver.url, { reportingIntervalMs: 600_000 }, { random }));
  }
  const triesMs: number[][] = beds.map(() => []);
  await Promise.all(beds.map((bed) => bed.tick(600_000)));
  await Promise.all(beds.map((bed) => until('the first try failed', () => bed.failures.server_error === 1)));
  for (let ms = 0; ms < 120_000; ms += 250) {
    for (const [i, bed] of beds.entries()) {
      const before = receiver.received.length;
      const waiting = bed.failures.server_error!;
      const timers = bed.clock.waiting;
      bed.clock.advance(250);
      // The timer of its backoff is gone until the answer is there.
      if (bed.clock.waiting === timers) continue;
      triesMs[i]!.push(ms);
      await until(`the try of agent ${i} after ${before}`, () => bed.failures.server_error! > waiting);
    }
  }
  const perSecond = new Map<number, number>();
  for (const at of triesMs.flat()) {
    const second = Math.floor(at / 1000);
    perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
  }
  const later = [...perSecond].filter(([second]) => second >= 20).map(([, tries]) => tries);
  expect(Math.max(...later)).toBeLessThan(40);
  for (const tries of triesMs) expect(tries[0]!).toBeGreaterThanOrEqual(4750);
  await Promise.all(beds.map((bed) => bed.stop()));
});
