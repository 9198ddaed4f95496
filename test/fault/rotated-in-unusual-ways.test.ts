import { copyFileSync, linkSync, renameSync, symlinkSync, truncateSync, utimesSync } from 'node:fs';
import { expect, test } from 'vitest';
import { systemDisk } from '../../src/sources/logs/discovery/disk.ts';
import { createSchedule } from '../../src/sources/logs/discovery/schedule.ts';
import { createComparedFiles, createContents } from '../../src/sources/logs/files/contents.ts';
import { manualClock } from '../clock.ts';
import { createTail, numbered, type Tail, tailOf } from '../tail.ts';

test('copytruncate: down across one rotation, back between the next copy and its truncation', async () => {
  const tail = await tailOf(20, { paths: ['app.log*'] });
  tail.append('app.log', numbered(20, 20).text);
  await tail.restart();
  tail.copyTruncate('app.log', 'app.log.1');
  tail.append('app.log', numbered(40, 30).text);
  tail.rename('app.log.1', 'app.log.2');
  copyFileSync(tail.path('app.log'), tail.path('app.log.1'));
  await tail.scan();
  truncateSync(tail.path('app.log'));
  tail.append('app.log', numbered(70, 2).text);
  expect(await tail.settled()).toEqual(numbered(0, 72).lines);
});

test('a short unfinished line does not identify a file', async () => {
  const tail = createTail({ paths: ['app.log'] });
  tail.create('app.log', '{"level":');
  await tail.scan();
  await tail.restart();
  tail.append('app.log', `"info"}\n${numbered(0, 100).text}`);
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', `{"level":"warn"}\n${numbered(100, 150).text}`);
  await tail.settle();
  const lines = tail.recorder.lines.filter((line) => line.startsWith('seq'));
  expect(lines).toEqual(numbered(0, 250).lines);
});

test.each([true, false])(
  'a copy under an unrelated name that matches, too (scan in between: %s)',
  async (isScanned) => {
    const tail = await tailOf(200, { paths: ['*'] });
    copyFileSync(tail.path('app.log'), tail.path('backup-of-yesterday'));
    if (isScanned) await tail.scan();
    truncateSync(tail.path('app.log'));
    tail.append('app.log', numbered(200, 2).text);
    await tail.settle();
    expect(await tail.settled()).toEqual(numbered(0, 202).lines);
  },
);

/** Compresses like some compressors do: the archive is younger than the file that follows. */
function gzipNow(tail: Tail, name: string): void {
  tail.gzip(name);
  const now = Date.now() / 1000 + 3600;
  utimesSync(tail.path(`${name}.gz`), now, now);
}

test('a compressor that does not keep the time, a plain .1 beside archives: everything is read', async () => {
  const tail = await tailOf(3000, { paths: ['app.log'] });
  await tail.restart();
  for (let rotation = 1; rotation <= 3; rotation++) {
    for (let n = 3; n > 0; n--) {
      for (const suffix of ['', '.gz']) {
        const from = `app.log.${n}${suffix}`;
        if (tail.exists(from)) tail.rename(from, `app.log.${n + 1}${suffix}`);
      }
    }
    if (tail.exists('app.log.2')) gzipNow(tail, 'app.log.2');
    tail.rename('app.log', 'app.log.1');
    tail.create('app.log', numbered(3000 * rotation, 3000).text);
  }
  await tail.settle();
  expect([...tail.recorder.lines].sort()).toEqual(numbered(0, 12_000).lines);
});

test('a link that was swung twice between two scans: the file in between is read', async () => {
  const tail = createTail({ paths: ['current'] });
  const swing = (target: string) => {
    symlinkSync(tail.path(target), tail.path('link.tmp'));
    renameSync(tail.path('link.tmp'), tail.path('current'));
  };
  tail.create('service-1.txt', numbered(0, 10).text);
  swing('service-1.txt');
  await tail.scan();
  for (const n of [2, 3]) {
    tail.create(`service-${n}.txt`, numbered(10 * (n - 1), 10).text);
    swing(`service-${n}.txt`);
  }
  expect(await tail.scanned()).toEqual(numbered(0, 30).lines);
  expect([...tail.tailer.directories]).toContain(tail.root);
});

test('a rotated file that was finished long ago is not read again when its name changes or it grows', async () => {
  const tail = createTail({ paths: ['app.log'] });
  for (let n = 0; n < 12; n++) {
    for (let k = n; k > 0; k--)
      if (tail.exists(`app.log.${k}`)) tail.rename(`app.log.${k}`, `app.log.${k + 1}`);
    if (n > 0) tail.rename('app.log', 'app.log.1');
    tail.create('app.log', numbered(10 * n, 10).text);
    await tail.settle();
  }
  linkSync(tail.path('app.log.11'), tail.path('app.log.99'));
  await tail.restart();
  expect(await tail.settled()).toEqual(numbered(0, 120).lines);
  tail.append('app.log.11', numbered(500, 1).text);
  expect(await tail.settled()).toEqual([...numbered(0, 120).lines, ...numbered(500, 1).lines]);
});

test('after a scan that took long, the next one is at most two seconds away', async () => {
  const clock = manualClock();
  const log = { write: () => {}, named: () => log };
  const scans: number[] = [];
  const schedule = createSchedule({
    clock,
    log,
    tailer: {
      scan: async () => void scans.push(clock.monotonicMs()),
      poll: async () => {},
      isActive: false,
      scanCostMs: 31_000,
    },
    scanned: () => {},
    isWatched: () => false,
  });
  schedule.begin();
  for (let n = 0; n < 100; n++) {
    if (n % 10 === 0) schedule.ring();
    clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  schedule.end();
  const waits = scans.map((at, i) => at - (scans[i - 1] ?? 0));
  expect(scans.length).toBeGreaterThanOrEqual(4);
  expect(Math.max(...waits)).toBeLessThanOrEqual(2_100);
});

test('a gzip file that inflates to a thousand times its size is compared in pieces', async () => {
  const tail = createTail();
  tail.create('bomb.log', Buffer.alloc(64 * 1024 * 1024));
  tail.gzip('bomb.log');
  const problems = { report: () => {}, resolve: () => {}, of: () => undefined };
  const slices = { spent: () => false, turn: async () => {} };
  const compared = createComparedFiles(systemDisk, problems, 1);
  const contents = createContents({ disk: systemDisk, compared, problems, slices });
  const path = tail.path('bomb.log.gz');
  const content = contents.of({ stat: systemDisk.stat(path)!, paths: [path] });
  compared.release();
  expect(content).toMatchObject({ size: 64 * 1024 * 1024 });
});
