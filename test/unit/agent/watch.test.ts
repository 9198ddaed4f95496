import { expect, test } from 'vitest';
import { createWatch } from '../../../src/agent/watch.ts';
import { manualClock } from '../../clock.ts';

/** A watch that has started, and when it sampled and when a report was made, in ms. */
function started() {
  const clock = manualClock();
  const sampled: number[] = [];
  const reported: number[] = [];
  const report = () => {
    watch.sampleIfDue();
    reported.push(clock.monotonicMs());
  };
  const watch = createWatch({ sample: () => sampled.push(clock.monotonicMs()), report }, clock);
  watch.start();
  return { clock, watch, report, sampled, reported };
}

test('while nobody asks, a report is made for each sample', () => {
  const { clock, sampled, reported } = started();
  clock.advance(33_000);
  expect(sampled).toEqual([1_500, 17_000, 32_500]);
  expect(reported).toEqual(sampled);
});

test('a report that is made anyway takes the sample that is due, and no other report is made for it', () => {
  const { clock, report, sampled, reported } = started();
  const every5s = Array.from({ length: 8 }, (_, i) => 5_005 * (i + 1));
  for (const atMs of every5s) {
    clock.advance(atMs - clock.monotonicMs());
    report();
  }
  expect(sampled).toEqual([1_500, 15_015, 30_030]);
  expect(reported).toEqual([1_500, ...every5s]);
});

test('a report before a sample is due takes none, nor does one after the stop, which also ends the samples', () => {
  const { clock, watch, report, sampled, reported } = started();
  report();
  clock.advance(2_000);
  watch.stop();
  clock.advance(60_000);
  report();
  expect(sampled).toEqual([1_500]);
  expect(reported).toEqual([0, 1_500, 62_000]);
});
