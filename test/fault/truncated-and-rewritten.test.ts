import { truncateSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

const before = numbered(0, 50);

test.each([
  ['smaller', 20],
  ['the same size', 50],
  ['larger', 90],
])('rewritten within one scan to %s', async (_, count) => {
  const tail = createTail();
  tail.create('app.log', before.text);
  await tail.scan();
  const after = numbered(5000 * 23, count);
  tail.create('app.log', after.text);
  expect(after.text.length === before.text.length).toBe(count === 50);
  expect(await tail.scanned()).toEqual([...before.lines, ...after.lines]);
});

test.each([1000, 1024, 5000])('the same size and the same first %i bytes', async (bannerBytes) => {
  const banner = 'b'.repeat(bannerBytes - 1);
  const tail = createTail();
  tail.create('app.log', `${banner}\nfirst ${'1'.repeat(100)}\n`);
  await tail.scan();
  tail.create('app.log', `${banner}\nother ${'2'.repeat(100)}\n`);
  await tail.scan();
  expect(tail.recorder.lines.map((line) => line.slice(0, 5))).toEqual(['bbbbb', 'first', 'bbbbb', 'other']);
});

test('the same bytes before the offset, another beginning', async () => {
  const end = 'e'.repeat(100);
  const tail = createTail();
  tail.create('app.log', `${'1'.repeat(200)}\n${end}\n`);
  await tail.scan();
  tail.create('app.log', `${'2'.repeat(200)}\n${end}\nmore\n`);
  await tail.scan();
  expect(tail.recorder.lines.map((line) => line[0])).toEqual(['1', 'e', '2', 'e', 'm']);
});

test('a quick pass notices it, too', async () => {
  const tail = createTail();
  tail.create('app.log', before.text);
  await tail.scan();
  tail.create('app.log', numbered(900, 60).text);
  await tail.tailer.poll();
  expect(tail.recorder.lines).toEqual([...before.lines, ...numbered(900, 60).lines]);
});

test('cut off in the middle of what was read: what follows is new', async () => {
  const tail = createTail();
  tail.create('app.log', before.text);
  await tail.scan();
  truncateSync(tail.path('app.log'), numbered(0, 10).text.length);
  await tail.scan();
  tail.append('app.log', numbered(700, 2).text);
  await tail.scan();
  expect(tail.recorder.lines.filter((line) => line.startsWith('seq=00007'))).toEqual(numbered(700, 2).lines);
});

test.each(['while it is open', 'while the agent is down'])(
  'only the unfinished line is cut off %s: it counts, and nothing before it is read again',
  async (when) => {
    const tail = createTail();
    tail.create('app.log', `${before.text}unfinished`);
    await tail.scan();
    if (when === 'while the agent is down') await tail.restart();
    truncateSync(tail.path('app.log'), before.text.length);
    tail.append('app.log', 'next\n');
    expect(await tail.scanned()).toEqual([...before.lines, 'unfinished', 'next']);
  },
);

test('lost before it was read: counted', async () => {
  const tail = createTail();
  tail.create('app.log', before.text);
  await tail.scan();
  const unread = `${'u'.repeat(999)}\n`;
  tail.append('app.log', unread.slice(0, 500));
  await tail.scan();
  await tail.restart();
  tail.create('app.log', 'new\n');
  await tail.scan();
  tail.clock.advance(1000);
  expect(await tail.scanned()).toEqual([...before.lines, 'new', 'u'.repeat(500)]);
  expect(tail.recorder.skips).toEqual([]);
});

test('an unfinished line too long to be kept is counted as lost bytes', async () => {
  const tail = createTail();
  tail.create('app.log', `${before.text}${'u'.repeat(10_000)}`);
  await tail.scan();
  tail.create('app.log', 'new\n');
  await tail.scan();
  tail.clock.advance(1000);
  expect(await tail.scanned()).toEqual([...before.lines, 'new']);
  expect(tail.recorder.skips).toEqual([{ reason: 'truncated', bytes: 10_000 }]);
});
