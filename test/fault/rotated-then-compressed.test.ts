import { expect, test } from 'vitest';
import { createTail, numbered, tailOf } from '../tail.ts';

test('compressed and unlinked at once while the file is open: the rest is read, the compressed one is not', async () => {
  const tail = await tailOf(10, { paths: ['app.log*'] });
  tail.append('app.log', numbered(10, 10).text);
  tail.rename('app.log', 'app.log.1');
  tail.gzip('app.log.1');
  tail.create('app.log', numbered(20, 10).text);
  expect(await tail.settled()).toEqual(numbered(0, 30).lines);
  expect(tail.recorder.skips).toEqual([]);
});

test('rotated and compressed while the agent is down: goes on inside the compressed file', async () => {
  const tail = createTail();
  tail.create('0.log', '');
  tail.create('app.log', numbered(0, 2000).text);
  await tail.scan();
  tail.append('app.log', numbered(2000, 30_000).text);
  await tail.restart();
  tail.rename('app.log', 'app.log.20260101-000000');
  tail.gzip('app.log.20260101-000000');
  tail.create('app.log', numbered(32_000, 10).text);
  expect(await tail.scanned()).toEqual(numbered(0, 32_010).lines);
});

test('three rotations while down, all but the youngest compressed', async () => {
  const tail = await tailOf(100);
  tail.append('app.log', numbered(100, 5).text);
  await tail.restart();
  let at = 105;
  for (let n = 0; n < 3; n++) {
    if (tail.exists('app.log.2.gz')) tail.rename('app.log.2.gz', 'app.log.3.gz');
    if (tail.exists('app.log.1')) {
      tail.rename('app.log.1', 'app.log.2');
      tail.gzip('app.log.2');
    }
    tail.rename('app.log', 'app.log.1');
    tail.create('app.log', numbered(at, 50).text);
    at += 50;
  }
  expect(await tail.scanned()).toEqual(numbered(0, at).lines);
});

test('equal beginnings: the compressed file that has the bytes before the offset is taken', async () => {
  const banner = `${'='.repeat(2000)}\n`;
  const tail = createTail();
  tail.create('app.log', banner + numbered(0, 20).text);
  await tail.scan();
  tail.append('app.log', numbered(20, 5).text);
  await tail.restart();
  tail.create('app.log.7', banner + numbered(500, 90).text);
  tail.gzip('app.log.7');
  tail.rename('app.log', 'app.log.8');
  tail.gzip('app.log.8');
  tail.create('app.log', numbered(25, 5).text);
  await tail.scan();
  // `app.log.7` appeared while the agent was down, too: it is a separate generation.
  const lines = tail.recorder.lines.filter((line) => !line.startsWith('==='));
  expect(lines.filter((line) => line < 'seq=0000500')).toEqual(numbered(0, 30).lines);
  expect(lines.filter((line) => line >= 'seq=0000500')).toEqual(numbered(500, 90).lines);
});

test('a damaged compressed file: what can be had is counted, the rest is an event', async () => {
  const tail = await tailOf(50);
  tail.append('app.log', numbered(50, 50).text);
  await tail.scan();
  tail.save();
  tail.append('app.log', numbered(100, 20_000).text);
  await tail.restart();
  tail.rename('app.log', 'app.log.1');
  tail.gzip('app.log.1');
  const whole = tail.bytes('app.log.1.gz');
  tail.create('app.log.1.gz', whole.subarray(0, whole.length - 20));
  tail.create('app.log', numbered(90_000, 1).text);
  // The archive might still be written, so it is tried again for a while.
  await tail.settle();
  const read = tail.recorder.lines.slice(0, -1);
  expect(tail.recorder.lines.at(-1)).toBe(numbered(90_000, 1).lines[0]);
  expect(read).toEqual(numbered(0, 20_100).lines.slice(0, read.length));
  expect(read.length).toBeGreaterThanOrEqual(100);
  expect(tail.logged.map(({ msg }) => msg)).toContain('compressed file cannot be read');
});

test('a restart in the middle of a compressed file', async () => {
  let steps = 0;
  const tail = createTail();
  const slow = { ...tail.clock, monotonicMs: () => steps++ * 100 };
  tail.create('app.log', numbered(0, 10).text);
  await tail.scan();
  tail.append('app.log', numbered(10, 60_000).text);
  await tail.restart({ clock: slow });
  tail.rename('app.log', 'app.log.1');
  tail.gzip('app.log.1');
  tail.create('app.log', '');
  const scanning = tail.scan();
  while (tail.recorder.lines.length < 10_000) await new Promise((resolve) => setImmediate(resolve));
  await tail.restart();
  await scanning;
  expect(tail.recorder.lines.length).toBeLessThan(60_010);
  expect(await tail.scanned()).toEqual(numbered(0, 60_010).lines);
});

test.each(['let go', 'missing', 'given up'])(
  'a smaller archive that begins with the same banner as a generation that is %s is read',
  async (state) => {
    const banner = '='.repeat(300);
    const tail = createTail({ paths: ['app.log*'] });
    tail.create('app.log', `${banner}\n${numbered(0, 40).text}`);
    await tail.scan();
    if (state === 'let go') {
      tail.rename('app.log', 'app.log-20260101');
      tail.gzip('app.log-20260101');
      await tail.settle();
    }
    await tail.restart();
    if (state !== 'let go') tail.remove('app.log');
    if (state === 'given up') await tail.settle();
    tail.create('app.log-20260102', `${banner}\n${numbered(100, 4).text}`);
    tail.gzip('app.log-20260102');
    expect(await tail.settled()).toEqual([
      banner,
      ...numbered(0, 40).lines,
      banner,
      ...numbered(100, 4).lines,
    ]);
  },
);
