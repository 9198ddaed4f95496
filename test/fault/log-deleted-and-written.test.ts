import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { watchFaults } from '../log-faults.ts';
import { createTail, type Tail } from '../tail.ts';
import { until } from '../until.ts';

const sizeOf = (pid: number) => statSync(`/proc/${pid}/fd/1`).size;

/** A process that appends each line of its input to the log, which it opened at its start. */
function startWriter(tail: Tail, name: string) {
  const child = spawn('sh', ['-c', 'while read -r line; do echo "$line"; done >> "$0"', tail.path(name)], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  let bytes = 0;
  return {
    pid: child.pid,
    /** Resolves when the line is written. */
    async write(text: string): Promise<void> {
      child.stdin.write(`${text}\n`);
      bytes += text.length + 1;
      await until('the line is written', () => sizeOf(child.pid!) === bytes);
    },
  };
}

test.skipIf(process.platform !== 'linux')(
  'a log that a process writes to although it was deleted is found, with the process',
  async () => {
    const tail = createTail({ paths: ['app.log'] });
    const faults = watchFaults(tail, ['app.log']);
    const writer = startWriter(tail, 'app.log');
    await writer.write('a');
    expect(await faults.round()).toEqual([]);
    tail.remove('app.log');
    await writer.write('b');
    await faults.round();
    await writer.write('c');
    expect(await faults.round()).toEqual([
      {
        kind: 'deleted',
        path: tail.path('app.log'),
        services: ['history'],
        writer: { pid: writer.pid, command: 'sh' },
        sinceMs: expect.any(Number),
      },
    ]);
    expect(tail.taken()).toEqual(['a', 'b', 'c']);
  },
);

test.skipIf(process.platform !== 'linux')('so is one that was deleted before the agent started', async () => {
  const tail = createTail({ paths: ['app.log'] });
  const writer = startWriter(tail, 'app.log');
  await writer.write('a');
  tail.remove('app.log');
  const faults = watchFaults(tail, ['app.log']);
  await faults.round();
  await writer.write('b');
  expect((await faults.round()).map(({ kind }) => kind)).toEqual(['deleted']);
});

test('a deleted log that nobody writes to is only gone', async () => {
  const tail = createTail({ paths: ['app.log'] });
  const writer = startWriter(tail, 'app.log');
  const faults = watchFaults(tail, ['app.log']);
  await writer.write('a');
  await faults.round();
  tail.remove('app.log');
  await faults.round();
  expect((await faults.round()).map(({ kind }) => kind)).toEqual(['gone']);
});
