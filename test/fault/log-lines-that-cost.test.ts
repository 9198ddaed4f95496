import { expect, test } from 'vitest';
import type { LineSink, OpenSink } from '../../src/sources/logs/sink.ts';
import { manualClock } from '../clock.ts';
import { createRecorder, createTail, numbered } from '../tail.ts';

/** A tail of one file whose lines take `lineMs` each. */
function openCostly(lineMs: () => number) {
  const clock = manualClock();
  const recorder = createRecorder();
  /** The duration of each write, and its number of bytes. */
  const writes: { ms: number; bytes: number }[] = [];
  const open: OpenSink = (file) => {
    const sink = recorder.open(file);
    const write: LineSink['write'] = (bytes, start, end) => {
      const before = recorder.lines.length;
      const taken = sink.write(bytes, start, end);
      const ms = (recorder.lines.length - before) * lineMs();
      clock.advance(ms);
      writes.push({ ms, bytes: end - start });
      return taken;
    };
    return { ...sink, write };
  };
  return { tail: createTail({ clock, open, paths: ['app.log'] }), recorder, writes };
}

test('lines that take a tenth of a millisecond share the event loop, and all count', async () => {
  const { tail, recorder, writes } = openCostly(() => 0.1);
  const { lines, text } = numbered(0, 40_000);
  tail.create('app.log', text);
  await tail.scan();
  expect(recorder.lines).toEqual(lines);
  // 8 KiB of lines of 13 bytes or more.
  expect(Math.max(...writes.slice(1).map(({ ms }) => ms))).toBeLessThanOrEqual((0.1 * 8_192) / 13);
});

test('lines that take no time are read in large pieces again after some that did', async () => {
  let lineMs = 1;
  const { tail, recorder, writes } = openCostly(() => lineMs);
  const slow = numbered(0, 5_000);
  tail.create('app.log', slow.text);
  await tail.scan();
  lineMs = 0;
  const quick = numbered(5_000, 50_000);
  tail.append('app.log', quick.text);
  await tail.scan();
  expect(recorder.lines).toEqual([...slow.lines, ...quick.lines]);
  expect(Math.max(...writes.map(({ bytes }) => bytes))).toBeGreaterThan(200 * 1024);
});

test('a line that is longer than what a turn reads is whole, also if it is finished later', async () => {
  const { tail, recorder } = openCostly(() => 20);
  const before = numbered(0, 5_000);
  const long = 'y'.repeat(700_000);
  tail.create('app.log', `${before.text}${long}`);
  await tail.scan();
  tail.append('app.log', `${long.slice(0, 100_000)}\n${numbered(0, 3).text}`);
  await tail.scan();
  expect(recorder.lines).toEqual([
    ...before.lines,
    `${long}${long.slice(0, 100_000)}`,
    ...numbered(0, 3).lines,
  ]);
});
