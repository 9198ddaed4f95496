import { describe, expect, test } from 'vitest';
import { createFreeSpace, type MeasureSpace } from '../../../../src/probes/stores/free-space.ts';
import { manualClock } from '../../../clock.ts';

const gibibyte = 1024 ** 3;
const here = { host: '127.0.0.1', port: 5432 };
const directories = [
  { holds: 'data', path: '/data' },
  { holds: 'WAL', path: '/data/pg_wal' },
];
const signal = () => AbortSignal.timeout(5000);
const disk = (freeBytes: number, totalBytes = 100 * gibibyte) => ({ device: 1, freeBytes, totalBytes });

/** Polls every five minutes; `freeAt` returns the free GiB after this many minutes. */
async function watch(freeAt: (minute: number) => number, minutes: number) {
  const clock = manualClock();
  let minute = 0;
  const space = createFreeSpace(clock, async () => disk(freeAt(minute) * gibibyte));
  for (; minute < minutes; minute += 5) {
    await space.check(directories, here, signal());
    clock.advance(300_000);
  }
  return space.check(directories, here, signal());
}

describe('free space', () => {
  test.each<[string, (minute: number) => number, number, boolean, string]>([
    ['much of it', () => 50, 0, true, 'data and WAL: 50.0 of 100.0 GiB free'],
    ['five of a hundred', () => 5, 0, true, 'data and WAL: 5.0 of 100.0 GiB free'],
    ['less than that', () => 4.9, 0, false, 'data and WAL: 4.9 of 100.0 GiB free'],
    // 30 GiB at 0.1 GiB a minute are 300 minutes, 20 GiB at the same rate 200.
    [
      'five hours left',
      (minute) => 42 - 0.1 * minute,
      120,
      true,
      'data and WAL: 30.0 of 100.0 GiB free, full in about 5h',
    ],
    [
      'less than four',
      (minute) => 32 - 0.1 * minute,
      120,
      false,
      'data and WAL: 20.0 of 100.0 GiB free, full in about 3h20m',
    ],
    [
      'an empty disk that fills',
      (minute) => 90 - 0.4 * minute,
      120,
      true,
      'data and WAL: 42.0 of 100.0 GiB free, full in about 1h45m',
    ],
    ['too short a time to tell', (minute) => 30 - minute, 25, true, 'data and WAL: 5.0 of 100.0 GiB free'],
    ['it grows', (minute) => 10 + minute / 10, 120, true, 'data and WAL: 22.0 of 100.0 GiB free'],
    ['a month and more', (minute) => 30 - minute / 10_000, 120, true, 'data and WAL: 30.0 of 100.0 GiB free'],
    // The decrease stopped an hour and a half ago; two hours are remembered.
    [
      'a fall that is over',
      (minute) => Math.max(20, 40 - minute),
      140,
      true,
      'data and WAL: 20.0 of 100.0 GiB free',
    ],
  ])('%s', async (_, freeAt, minutes, holds, found) => {
    expect(await watch(freeAt, minutes)).toEqual({ check: 'free_space', holds, found });
  });

  test('each file system is judged; the worst counts', async () => {
    const measure: MeasureSpace = async (path) =>
      path === '/data' ? { ...disk(50 * gibibyte), device: 1 } : { ...disk(gibibyte), device: 2 };
    const found = 'data: 50.0 of 100.0 GiB free; WAL: 1.0 of 100.0 GiB free';
    expect(await createFreeSpace(manualClock(), measure).check(directories, here, signal())).toMatchObject({
      holds: false,
      found,
    });
  });

  test('what the agent may not see is unknown, unless what it sees is full', async () => {
    let free = 50 * gibibyte;
    const space = createFreeSpace(manualClock(), async (path) => {
      if (path === '/data') return disk(free);
      throw new Error('EACCES: permission denied');
    });
    expect(await space.check(directories, here, signal())).toMatchObject({
      holds: 'unknown',
      found: 'data: 50.0 of 100.0 GiB free; WAL: EACCES: permission denied',
    });
    free = gibibyte;
    expect(await space.check(directories, here, signal())).toMatchObject({ holds: false });
  });

  test('directories of another host are not looked for here', async () => {
    const measure: MeasureSpace = () => Promise.reject(new Error('measured here'));
    const space = createFreeSpace(manualClock(), measure);
    const there = { host: 'db.example', port: 3306 };
    expect(await space.check(directories, there, signal())).toMatchObject({
      holds: 'unknown',
      found: 'the agent is not on the store’s host',
    });
    expect(await space.check([], there, signal())).toMatchObject({ holds: 'unknown' });
    expect(await space.check(undefined, there, signal())).toBeUndefined();
  });

  test('a file system that hangs ends the poll in time and is not asked again', async () => {
    let asked = 0;
    const space = createFreeSpace(manualClock(), () => {
      asked += 1;
      return new Promise(() => {});
    });
    const end = new AbortController();
    const first = space.check(directories, here, end.signal);
    end.abort(new Error('time is up'));
    await expect(first).rejects.toThrow('time is up');
    expect(await space.check(directories, here, signal())).toMatchObject({ holds: 'unknown' });
    expect(asked).toBe(1);
  });

  test('a file system without a size is unknown', async () => {
    const space = createFreeSpace(manualClock(), async () => disk(0, 0));
    expect(await space.check(directories, here, signal())).toMatchObject({ holds: 'unknown' });
  });
});
