import { linkSync, mkdirSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import { createLogs, type LogsSource } from '../../../src/sources/logs/source.ts';
import { manualClock } from '../../clock.ts';
import { createRecorder, createTail, logsOptions, numbered, type Tail } from '../../tail.ts';
import { until } from '../../until.ts';

const silent = { write: () => {}, named: () => silent };

function logsOver(tail: Tail, paths: readonly string[], deps = {}) {
  const recorder = createRecorder();
  const logs: LogsSource = createLogs(
    { services: { history: logsOptions({ paths }) }, selected: new Set(['history']) },
    { openSink: recorder.open, clock: tail.clock, log: silent, lag: () => {}, ...deps },
  );
  return { recorder, logs };
}

test('the doorbell and the clock of the system: lines are counted as they come', async () => {
  const tail = createTail();
  tail.create('app.log', numbered(0, 3).text);
  const { recorder, logs } = logsOver(tail, [tail.path('*.log')], { clock: systemClock });
  const stop = await logs.start();
  onTestFinished(stop);
  await until('3 lines are read', () => recorder.lines.length === 3);
  tail.append('app.log', numbered(3, 3).text);
  await until('6 lines are read', () => recorder.lines.length === 6);
  tail.rename('app.log', 'app.log.1');
  tail.create('app.log', numbered(6, 3).text);
  await until('9 lines are read', () => recorder.lines.length === 9);
  expect(recorder.lines).toEqual(numbered(0, 9).lines);
});

test('what is written through a link in another directory does not ring, and is found within two seconds', async () => {
  const tail = createTail();
  tail.create('logs/app.log', '');
  mkdirSync(tail.path('elsewhere'));
  linkSync(tail.path('logs/app.log'), tail.path('elsewhere/app.log'));
  const { recorder, logs } = logsOver(tail, [tail.path('logs/app.log')]);
  const stop = await logs.start();
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      tail.clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  for (const n of [0, 1, 2]) {
    await pass(5000);
    tail.append('elsewhere/app.log', numbered(n, 1).text);
    await pass(2050);
    expect(recorder.lines).toEqual(numbered(0, n + 1).lines);
  }
  await stop();
});

test('without a doorbell: found within a quarter of a second while active, within a second when idle', async () => {
  const clock = manualClock();
  const tail = createTail();
  tail.create('app.log', numbered(0, 1).text);
  const { recorder, logs } = logsOver(tail, [tail.path('app.log')], { clock });
  const stop = await logs.start();
  const after = async (ms: number, count: number) => {
    clock.advance(ms);
    await until('lines are read', () => recorder.lines.length >= count && clock.waiting > 0);
  };
  await after(1000, 1);
  tail.append('app.log', numbered(1, 1).text);
  await after(1000, 2);
  tail.append('app.log', numbered(2, 1).text);
  await after(250, 3);
  clock.advance(3_600_000);
  await until('a timer waits', () => clock.waiting > 0);
  tail.append('app.log', numbered(3, 1).text);
  await after(1000, 4);
  await stop();
  expect(clock.waiting).toBe(0);
  expect(recorder.lines).toEqual(numbered(0, 4).lines);
});

test('start resolves when every file has its position; look counts everything written before it', async () => {
  const tail = createTail();
  tail.create('app.log', numbered(0, 1000).text);
  const { recorder, logs } = logsOver(tail, [tail.path('app.log')]);
  const stop = await logs.start();
  expect(logs.files().map(({ path }) => path)).toEqual([tail.path('app.log')]);
  tail.append('app.log', numbered(1000, 1).text);
  await Promise.all([logs.scan(), logs.scan()]);
  expect(recorder.lines).toEqual(numbered(0, 1001).lines);
  await stop();
  const next = logsOver(tail, [tail.path('app.log')]);
  next.logs.restore(Uint8Array.from(logs.freeze()));
  await next.logs.scan();
  expect(next.recorder.lines).toEqual([]);
});

test('standard input: lines in pieces, the last one without a newline, then its end', async () => {
  const tail = createTail();
  const input = new PassThrough();
  const { recorder, logs } = logsOver(tail, ['-'], { input: () => input });
  const stop = await logs.start();
  for (const piece of ['on', 'e\ntw', 'o\nthr', 'ee']) input.write(piece);
  await until('2 lines are read', () => recorder.lines.length === 2);
  input.end();
  await until('3 lines are read', () => recorder.lines.length === 3);
  await stop();
  expect(recorder.lines).toEqual(['one', 'two', 'three']);
  expect(recorder.files).toEqual([{ path: '-', claimants: ['history'], state: undefined }]);
});

test('standard input breaks: what came counts, and the rest of the agent goes on', async () => {
  const tail = createTail();
  const input = new PassThrough();
  const { recorder, logs } = logsOver(tail, ['-', tail.path('app.log')], { input: () => input });
  const stop = await logs.start();
  input.write('one\ntw');
  await until('1 lines are read', () => recorder.lines.length === 1);
  input.destroy(new Error('EIO'));
  await until('2 lines are read', () => recorder.lines.length === 2);
  tail.create('app.log', 'file\n');
  await logs.scan();
  await stop();
  expect(recorder.lines).toEqual(['one', 'tw', 'file']);
});

test('reloaded: other paths, at once', async () => {
  const tail = createTail();
  tail.create('a.log', 'a\n');
  tail.create('b.log', 'b\n');
  const { recorder, logs } = logsOver(tail, [tail.path('a.log')]);
  const stop = await logs.start();
  await logs.scan();
  const next = createRecorder();
  await logs.prepare({
    services: { worker: logsOptions({ paths: [tail.path('b.log')] }) },
    selected: new Set(['worker']),
  })(() => next.open);
  tail.append('a.log', 'not followed any more\n');
  await logs.scan();
  await stop();
  expect([recorder.lines, next.lines]).toEqual([['a'], ['b']]);
});
