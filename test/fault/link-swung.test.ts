import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createTail, numbered, type Tail } from '../tail.ts';

function swing(tail: Tail, link: string, target: string, way: 'rename' | 'unlink' = 'rename'): void {
  if (way === 'unlink') {
    rmSync(tail.path(link), { force: true });
    symlinkSync(tail.path(target), tail.path(link));
  } else {
    symlinkSync(tail.path(target), tail.path('link.tmp'));
    renameSync(tail.path('link.tmp'), tail.path(link));
  }
}

test.each(['rename', 'unlink'] as const)(
  'to a new file, by %s: the old one is drained first',
  async (way) => {
    const tail = createTail({ paths: ['current'] });
    tail.create('0101.log', numbered(0, 10).text);
    swing(tail, 'current', '0101.log');
    await tail.scan();
    tail.append('0101.log', numbered(10, 5).text);
    tail.create('0102.log', numbered(15, 5).text);
    swing(tail, 'current', '0102.log', way);
    expect(await tail.scanned()).toEqual(numbered(0, 20).lines);
  },
);

test('thirty times, with lines in both files', async () => {
  const tail = createTail({ paths: ['current'] });
  let at = 0;
  for (let n = 0; n < 30; n++) {
    if (n > 0) tail.append(`d${n - 1}`, numbered(at++, 1).text);
    tail.create(`d${n}`, numbered(at, 3).text);
    at += 3;
    swing(tail, 'current', `d${n}`);
    await tail.scan();
    tail.clock.advance(20_000);
  }
  expect(tail.recorder.lines).toEqual(numbered(0, at).lines);
  await tail.settle();
  expect(tail.tailer.files().length).toBeLessThan(8);
});

test('several times while the agent is down, away from a file that was empty', async () => {
  const tail = createTail({ paths: ['current'] });
  tail.create('0101.log', '');
  swing(tail, 'current', '0101.log');
  await tail.scan();
  tail.save();
  for (let n = 0; n < 4; n++) {
    tail.append(`010${n + 1}.log`, numbered(5 * n, 5).text);
    swing(tail, 'current', `010${n + 1}.log`);
  }
  await tail.kill();
  expect(await tail.settled()).toEqual(numbered(0, 20).lines);
});

test('twice while its file is looked up: the file between is read', async () => {
  let isNext = false;
  const tail = createTail({
    paths: ['current'],
    disk: {
      ...systemDisk,
      real(path) {
        if (isNext) {
          isNext = false;
          for (const n of [3, 4]) {
            tail.create(`010${n}.log`, numbered(5 * n, 5).text);
            swing(tail, 'current', `010${n}.log`);
          }
        }
        return systemDisk.real(path);
      },
    },
  });
  tail.create('0101.log', numbered(5, 5).text);
  swing(tail, 'current', '0101.log');
  await tail.scan();
  tail.remove('0101.log');
  await tail.settle();
  tail.create('0102.log', numbered(10, 5).text);
  swing(tail, 'current', '0102.log');
  isNext = true;
  expect(await tail.settled()).toEqual(numbered(5, 20).lines);
});

test('back to an older file: goes on where it was', async () => {
  const tail = createTail({ paths: ['current'] });
  tail.create('a', numbered(0, 5).text);
  swing(tail, 'current', 'a');
  await tail.scan();
  tail.create('b', numbered(5, 5).text);
  swing(tail, 'current', 'b');
  await tail.settle();
  tail.append('a', numbered(10, 5).text);
  swing(tail, 'current', 'a');
  expect(await tail.settled()).toEqual(numbered(0, 15).lines);
});

test('a chain of two links, and the file by its own name, too: one file, once', async () => {
  const tail = createTail({ paths: ['*.log', 'links/*'] });
  mkdirSync(tail.path('links'));
  tail.create('a.log', numbered(0, 5).text);
  symlinkSync('../a.log', tail.path('links/first'));
  symlinkSync('first', tail.path('links/second'));
  linkSync(tail.path('a.log'), tail.path('hard.log'));
  await tail.scan();
  tail.append('a.log', numbered(5, 5).text);
  expect(await tail.scanned()).toEqual(numbered(0, 10).lines);
  expect(tail.recorder.files).toHaveLength(1);
});

test('hard links: a name goes, the file stays', async () => {
  const tail = createTail({ paths: ['*.log'] });
  tail.create('a.log', numbered(0, 5).text);
  linkSync(tail.path('a.log'), tail.path('b.log'));
  await tail.scan();
  tail.remove('a.log');
  tail.append('b.log', numbered(5, 5).text);
  await tail.settle();
  await tail.restart();
  expect(await tail.settled()).toEqual(numbered(0, 10).lines);
});

test('a container log: rotated by the kubelet behind the link, then a new container', async () => {
  const tail = createTail({ paths: ['containers/*.log'] });
  mkdirSync(tail.path('containers'));
  tail.create('pods/p/0.log', numbered(0, 5).text);
  swing(tail, 'containers/p.log', 'pods/p/0.log');
  await tail.scan();
  await tail.restart();
  tail.append('pods/p/0.log', numbered(5, 5).text);
  tail.rename('pods/p/0.log', 'pods/p/0.log.20260101-000000');
  tail.create('pods/p/0.log', numbered(10, 5).text);
  tail.rename('pods/p/0.log', 'pods/p/0.log.20260101-000100');
  tail.gzip('pods/p/0.log.20260101-000000');
  tail.create('pods/p/0.log', numbered(15, 5).text);
  tail.create('pods/p/1.log', numbered(20, 5).text);
  tail.create('pods/p/2.log', numbered(25, 5).text);
  swing(tail, 'containers/p.log', 'pods/p/2.log');
  expect(await tail.scanned()).toEqual(numbered(0, 30).lines);
});
