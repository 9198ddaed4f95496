import { expect, test } from 'vitest';
import { type Disk, systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail } from '../tail.ts';

function counted(): { disk: Disk; calls: Map<string, number> } {
  const calls = new Map<string, number>();
  const counting = <A extends unknown[], R>(name: string, call: (...args: A) => R) => {
    return (...args: A): R => {
      calls.set(name, (calls.get(name) ?? 0) + 1);
      return call(...args);
    };
  };
  const { list, stat, real, open, close, fstat, read } = systemDisk;
  return {
    calls,
    disk: {
      list: counting('list', list),
      stat: counting('stat', stat),
      real: counting('real', real),
      open: counting('open', open),
      close: counting('close', close),
      fstat: counting('fstat', fstat),
      read: counting('read', read),
    },
  };
}

test('an idle scan costs one stat per file and one listing, and its positions encode once', async () => {
  const { disk, calls } = counted();
  const tail = createTail({ paths: ['*.log'], disk });
  const count = 3000;
  for (let n = 0; n < count; n++) tail.create(`f${n}.log`, `line ${n}\n`);
  await tail.scan();
  tail.clock.advance(3_600_000);
  const frozen = tail.tailer.freeze();
  calls.clear();
  await tail.scan();
  expect(Object.fromEntries(calls)).toEqual({ list: 1, stat: count });
  expect(tail.tailer.freeze()).toBe(frozen);
  tail.append('f77.log', 'after an hour\n');
  calls.clear();
  await tail.scan();
  expect(tail.recorder.lines.at(-1)).toBe('after an hour');
  expect(calls.get('read')).toBeLessThan(5);
});

test('2,000 files after a restart: a scan is cut into slices', async () => {
  let readings = 0;
  const tail = createTail({ paths: ['*.log'] });
  for (let n = 0; n < 2000; n++) tail.create(`f${n}.log`, `line ${n}\n`);
  const busy = { ...tail.clock, monotonicMs: () => readings++ };
  await tail.restart({ clock: busy });
  let turns = 0;
  let isLooking = true;
  const count = async () => {
    while (isLooking) {
      turns++;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const counting = count();
  await tail.scan();
  isLooking = false;
  await counting;
  expect(tail.recorder.lines).toHaveLength(2000);
  expect(turns).toBeGreaterThan(100);
});
