import { expect, test } from 'vitest';
import { createTail, numbered } from '../tail.ts';

test('the slow files do not wait for the end of the hot one', async () => {
  const tail = createTail({ paths: ['*.log'] });
  tail.create('a-hot.log', '');
  for (let n = 0; n < 50; n++) tail.create(`slow${n}.log`, '');
  await tail.scan();
  tail.append('a-hot.log', numbered(0, 300_000).text);
  for (let n = 0; n < 50; n++) tail.append(`slow${n}.log`, `slow ${n}\n`);
  await tail.scan();
  const { lines } = tail.recorder;
  expect(lines).toHaveLength(300_050);
  const lastSlow = lines.findLastIndex((line) => line.startsWith('slow'));
  const chunkLines = (256 * 1024) / 13;
  expect(lastSlow).toBeLessThan(2 * chunkLines);
});

test('between two slices the positions agree with what was counted', async () => {
  let readings = 0;
  const tail = createTail();
  await tail.restart({ clock: { ...tail.clock, monotonicMs: () => readings++ * 5 } });
  const { text, lines } = numbered(0, 200_000);
  tail.create('app.log', text);
  const scanning = tail.scan();
  const seen: [number, number][] = [];
  let isLooking = true;
  void scanning.then(() => {
    isLooking = false;
  });
  while (isLooking) {
    const offset = tail.tailer.files()[0]?.offset ?? 0;
    seen.push([offset, tail.recorder.lines.length]);
    tail.tailer.freeze();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const lengthOf = (count: number) => lines.slice(0, count).reduce((sum, line) => sum + line.length + 1, 0);
  const middle = seen.filter(([, count]) => count > 0 && count < lines.length);
  expect(middle.length).toBeGreaterThan(3);
  for (const [offset, count] of middle) expect(offset).toBe(lengthOf(count));
});

test('stopped in the middle of a large file: goes on there', async () => {
  let readings = 0;
  const tail = createTail();
  const { text, lines } = numbered(0, 200_000);
  tail.create('app.log', text);
  await tail.restart({ clock: { ...tail.clock, monotonicMs: () => readings++ * 5 } });
  const scanning = tail.scan();
  while (tail.recorder.lines.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await tail.restart();
  await scanning;
  expect(tail.recorder.lines.length).toBeLessThan(200_000);
  expect(await tail.scanned()).toEqual(lines);
});
