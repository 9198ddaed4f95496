import { expect, test } from 'vitest';
import { counter, openBed, receiverForEachTest, status, untilMoving, written } from '../hosted.ts';
import { until } from '../until.ts';

const receiver = receiverForEachTest();

const hourMs = 3_600_000;

test.each([
  ['forward', hourMs],
  ['back', -hourMs],
])('an hour %s: the rhythm stays, and times are those of the clock', async (_, jumpMs) => {
  const bed = await openBed(receiver.url);
  await bed.tick();
  await until('the first one goes through', () => bed.delivered() === 1);
  bed.clock.jumpTo(bed.clock.nowMs() + jumpMs);
  bed.clock.advance(999);
  expect(bed.views).toHaveLength(1);
  await bed.tick(1);
  await until('the next one goes through', () => bed.delivered() === 2);
  const [first, second] = receiver.taken().map((one) => one.samples()[0]!.timeMs);
  expect(second! - first!).toBe(jumpMs + 1000);
  expect(second).toBe(bed.clock.nowMs());
});

test('a jump makes nothing that waits older', async () => {
  receiver.reply(status(503));
  const bed = await openBed(receiver.url, { queue: { maxBytes: 1_048_576, maxAgeMs: 600_000 } });
  await bed.tick();
  bed.clock.jumpTo(bed.clock.nowMs() + hourMs);
  await bed.tick();
  bed.clock.jumpTo(bed.clock.nowMs() - 2 * hourMs);
  await bed.tick();
  receiver.reply(written);
  await untilMoving(bed.clock, 500, () => bed.queued().bytes === 0, 'the backlog is gone');
  expect(bed.drops).toEqual({});
  expect(receiver.taken().length).toBeGreaterThanOrEqual(3);
});

test('a machine that slept an hour reports once, not once for each interval it missed', async () => {
  const bed = await openBed(receiver.url);
  bed.show([counter(5)]);
  await bed.tick(hourMs);
  await until('one report goes through', () => bed.delivered() === 1);
  expect(bed.views).toHaveLength(1);
  await bed.tick(1000);
  await until('and the next after an interval', () => bed.delivered() === 2);
  expect(bed.views).toHaveLength(2);
});
