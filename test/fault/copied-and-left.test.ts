import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createTail, numbered, type Tail } from '../tail.ts';

/** logrotate with `copy` and `compress`: the log stays as it is, and each archive has a longer beginning of it. */
function rotateAndLeave(tail: Tail, name: string, archives: number): void {
  for (let n = archives; n > 0; n--) tail.rename(`${name}.${n}.gz`, `${name}.${n + 1}.gz`);
  copyFileSync(tail.path(name), tail.path(`${name}.1`));
  execFileSync('gzip', [tail.path(`${name}.1`)]);
}

test('archives of copies of a log that goes on are not read', async () => {
  const tail = createTail({ paths: ['*.log*'] });
  const writer = tail.writer('app.log');
  for (let n = 0; n < 5; n++) {
    writer.write(numbered(100 * n, 100).text);
    await tail.scan();
    rotateAndLeave(tail, 'app.log', n);
  }
  writer.write(numbered(500, 10).text);
  await tail.settle();
  expect(await tail.settled()).toEqual(numbered(0, 510).lines);
  expect(tail.recorder.skips).toEqual([]);
});

/** Lines with a time, as services write them: without one, equal beginnings may be a banner of two generations. */
const timed = (from: number, count: number) => {
  const { lines } = numbered(from, count);
  const all = lines.map((line, i) => `${new Date(1e12 + 1000 * (from + i)).toISOString()} ${line}`);
  return { lines: all, text: all.map((line) => `${line}\n`).join('') };
};

test.each([false, true])(
  'a log is renamed, copied to another directory, and deleted (compressed: %s), and the agent is killed',
  async (isCompressed) => {
    const tail = createTail({ paths: ['*.log*', 'old/*.log*'] });
    mkdirSync(tail.path('old'));
    const writer = tail.writer('app.log');
    writer.write(timed(0, 100).text);
    await tail.scan();
    tail.rename('app.log', 'app.log.tmp');
    copyFileSync(tail.path('app.log.tmp'), tail.path('old/app.log.1'));
    // The writer opens its log again a little later.
    writer.write(timed(100, 5).text);
    await tail.scan();
    tail.save();
    tail.create('app.log', timed(105, 10).text);
    rmSync(tail.path('app.log.tmp'));
    if (isCompressed) execFileSync('gzip', [tail.path('old/app.log.1')]);
    await tail.kill();
    await tail.settle();
    expect(await tail.settled()).toEqual(timed(0, 115).lines);
  },
);

test.each([
  ['whole lines', numbered(100, 5).text, numbered(100, 5).lines],
  ['a line that stays unfinished', 'seq=00001', ['seq=00001']],
])('a rotated log is compressed while the service still writes to it: %s', async (_, text, lines) => {
  const tail = createTail({ paths: ['*.log*'] });
  const writer = tail.writer('app.log');
  writer.write(numbered(0, 100).text);
  await tail.scan();
  tail.rename('app.log', 'app.log.1');
  execFileSync('gzip', [tail.path('app.log.1')]);
  writer.write(text);
  await tail.scan();
  writer.close();
  tail.create('app.log', numbered(105, 10).text);
  await tail.settle();
  await tail.settle();
  const expected = [...numbered(0, 100).lines, ...lines, ...numbered(105, 10).lines];
  expect(tail.recorder.lines.toSorted()).toEqual(expected.toSorted());
});
