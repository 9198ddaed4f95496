import { EventEmitter } from 'node:events';
import type { FSWatcher, watch } from 'node:fs';
import { expect, test } from 'vitest';
import { createDoorbell, createSchedule } from '../../../src/sources/logs/discovery/schedule.ts';
import { manualClock } from '../../clock.ts';

const log = { write: () => {}, named: () => log };

/** A schedule over a tailer that finds a change in the scan after `change`. `seconds` returns the times of the scans, in seconds. */
function scheduled({ isWatched = true } = {}) {
  const clock = manualClock();
  const scans: number[] = [];
  let isChanged = false;
  let activeUntilMs = 0;
  const schedule = createSchedule({
    clock,
    log,
    tailer: {
      async scan() {
        scans.push(clock.monotonicMs() / 1000);
        if (isChanged) activeUntilMs = clock.monotonicMs() + 500;
        isChanged = false;
      },
      poll: async () => {},
      get isActive() {
        return clock.monotonicMs() < activeUntilMs;
      },
      scanCostMs: 1,
    },
    scanned: () => {},
    isWatched: () => isWatched,
  });
  schedule.begin();
  return {
    ring: schedule.ring,
    change() {
      isChanged = true;
    },
    async pass(ms: number) {
      scans.length = 0;
      for (let passed = 0; passed < ms; passed += 50) {
        clock.advance(50);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return [...scans];
    },
  };
}

test('directories that are not watched are scanned every second', async () => {
  const { pass } = scheduled({ isWatched: false });
  expect(await pass(4000)).toEqual([1, 2, 3, 4]);
});

test('directories that are watched are scanned every two seconds, and at once when they ring', async () => {
  const { pass, ring, change } = scheduled();
  expect(await pass(6000)).toEqual([2, 4, 6]);
  change();
  ring();
  expect(await pass(4000)).toEqual([6.1, 8.1]);
});

test('a change that rings only after the scan that found it was heard', async () => {
  const { pass, ring, change } = scheduled();
  change();
  expect(await pass(2000)).toEqual([2]);
  ring();
  expect(await pass(4100)).toEqual([2.1, 4.1, 6.1]);
});

test('after a change that did not ring, the watches are not relied on', async () => {
  const { pass, ring, change } = scheduled();
  change();
  expect(await pass(2000)).toEqual([2]);
  expect(await pass(3000)).toEqual([3, 4, 5]);
  ring();
  expect(await pass(2100)).toEqual([5.1, 6.1, 7.1]);
});

test('only if each of the directories is watched is nothing missed', () => {
  const bells = new Map<string, EventEmitter>();
  const hang = (path: string) => {
    if (path === '/denied') throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    const bell = Object.assign(new EventEmitter(), { close: () => {} });
    bells.set(path, bell);
    return bell as unknown as FSWatcher;
  };
  const doorbell = createDoorbell(log, () => {}, hang as unknown as typeof watch);
  const isCompleteFor = (directories: readonly string[]) => {
    doorbell.watch(directories);
    return doorbell.isComplete();
  };
  expect(doorbell.isComplete()).toBe(false);
  expect(isCompleteFor([])).toBe(false);
  expect(isCompleteFor(['/a', '/b'])).toBe(true);
  expect(isCompleteFor(['/a', '/denied'])).toBe(false);
  expect(isCompleteFor(Array.from({ length: 65 }, (_, n) => `/d${n}`))).toBe(false);
  expect(isCompleteFor(['/a', '/b'])).toBe(true);
  bells.get('/b')!.emit('error', new Error('the directory is gone'));
  expect(doorbell.isComplete()).toBe(false);
});
