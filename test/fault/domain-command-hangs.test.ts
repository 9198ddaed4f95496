import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { checkBy, kept } from '../domain-command.ts';
import { newFolder } from '../folder.ts';
import { until } from '../until.ts';

const folder = newFolder(afterAll);

/** Whether a process runs; a process that has ended and was not waited for is a zombie. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

test('a command that hangs is ended with all it started when the time is over', async () => {
  const file = join(folder, 'pids');
  const script = 'trap "" TERM; sleep 600 & echo "$$ $!" > "$0.new"; mv "$0.new" "$0"; wait; wait';
  const stop = new AbortController();
  const pending = checkBy(['sh', '-c', script, file], stop.signal);
  await until('the command runs', () => existsSync(file));
  stop.abort();
  const found = await pending;
  expect(found).toEqual({ reason: 'too_slow', msg: 'sh: did not end in time', remember: kept });
  const pids = readFileSync(file, 'utf8').trim().split(' ').map(Number);
  expect(pids).toHaveLength(2);
  await until('nobody is left', () => !pids.some(isAlive));
});
