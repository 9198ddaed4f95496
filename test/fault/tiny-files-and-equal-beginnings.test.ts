import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

test('an empty file, then one byte, then a line', async () => {
  const tail = createTail();
  tail.create('app.log', '');
  await tail.scan();
  tail.append('app.log', 'a');
  await tail.scan();
  await tail.restart();
  expect(await tail.scanned()).toEqual([]);
  tail.append('app.log', '\n');
  await tail.scan();
  tail.append('app.log', 'b\n');
  await tail.scan();
  await tail.restart();
  expect(await tail.scanned()).toEqual(['a', 'b']);
});

test.each([10, 1000, 1024, 4096])('two files that are the same for their first %i bytes', async (bytes) => {
  const banner = `${'b'.repeat(bytes - 1)}\n`;
  const tail = createTail({ paths: ['*.log'] });
  tail.create('a.log', banner);
  tail.create('b.log', banner);
  await tail.scan();
  tail.append('a.log', numbered(0, 20).text);
  tail.append('b.log', numbered(50, 20).text);
  await tail.restart();
  await tail.scan();
  const rest = tail.recorder.lines.filter((line) => line.startsWith('seq'));
  expect(tail.recorder.lines.length).toBe(42);
  expect(rest.sort()).toEqual([...numbered(0, 20).lines, ...numbered(50, 20).lines]);
});

test('a rotated file and its successor begin with the same banner', async () => {
  const banner = `${'b'.repeat(2000)}\n`;
  const tail = createTail();
  for (let n = 0; n < 4; n++) {
    for (let k = n; k > 1; k--) tail.rename(`app.log.${k - 1}`, `app.log.${k}`);
    if (n > 0) tail.rename('app.log', 'app.log.1');
    tail.create('app.log', banner + numbered(10 * n, 10).text);
    if (n !== 2) await tail.scan();
  }
  await tail.settle();
  const rest = tail.recorder.lines.filter((line) => line.startsWith('seq'));
  expect(rest).toEqual(numbered(0, 40).lines);
  expect(tail.recorder.lines).toHaveLength(44);
});

test('a rotated file that is seen first under that name begins like one that was read and is still there', async () => {
  const banner = 'b'.repeat(100);
  const tail = createTail({ paths: ['app.log*'] });
  tail.create('app.log', `${banner}\n`);
  await tail.scan();
  tail.rename('app.log', 'app.log.1');
  await tail.settle();
  await tail.restart();
  tail.rename('app.log.1', 'app.log.2');
  tail.create('app.log.1', `${banner}\n${numbered(0, 10).text}`);
  tail.create('app.log', numbered(20, 10).text);
  expect(await tail.settled()).toEqual([banner, banner, ...numbered(0, 10).lines, ...numbered(20, 10).lines]);
});
