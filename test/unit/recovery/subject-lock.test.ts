import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { lockSubject } from '../../../src/agent/recovery/subject-lock.ts';
import { newFolder } from '../../folder.ts';
import { until } from '../../until.ts';

const subject = { store: 'main', database: 'persistence' } as const;
const recordOf = (state: string) =>
  join(state, 'recovery-runs', 'store.main.persistence.lock', 'command.json');

/** A process with its own variables that runs until the test ends it. */
async function running(
  command: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
): Promise<ChildProcess> {
  const child = spawn(command[0], command.slice(1), {
    env: { PATH: process.env.PATH, ...env },
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  await until(
    'the program runs',
    () => readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').startsWith(command[0]) || undefined,
  );
  return child;
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

test('one run at a time of what changes the same', async () => {
  const state = newFolder();
  const first = await lockSubject(state, 'database-corruption', subject);
  const refused = lockSubject(state, 'cluster-loss', subject);
  await expect(refused).rejects.toMatchObject({
    code: 'state_locked',
    message: expect.stringMatching(
      new RegExp(
        `a run of database-corruption \\(pid ${process.pid}, since \\d{4}-.*Z\\) is under way for main/persistence`,
      ),
    ),
  });
  const others = [
    await lockSubject(state, 'cluster-loss', { store: 'main', database: 'visibility' }),
    await lockSubject(state, 'failback', { domain: 'orders' }),
  ];
  await expect(lockSubject(state, 'datacenter-failure', { domain: 'orders' })).rejects.toThrow(
    /failback .* for orders/,
  );
  for (const lock of others) await lock.release();
  await first.release();
  await (await lockSubject(state, 'cluster-loss', subject)).release();
});

test('the record of a holder that is another process names nobody', async () => {
  const state = newFolder();
  const lock = await lockSubject(state, 'failback', { domain: 'orders' });
  const file = join(state, 'recovery-runs', 'domain.orders.lock', 'holder.json');
  for (const text of [JSON.stringify({ pid: 1, procedure: 'old', startMs: 0 }), 'cut o']) {
    writeFileSync(file, text);
    await expect(lockSubject(state, 'failback', { domain: 'orders' })).rejects.toThrow(
      `another run (pid ${process.pid}) is under way`,
    );
  }
  await lock.release();
});

test('a place that cannot be written is an error with its path', async () => {
  const state = join(newFolder(), 'file');
  writeFileSync(state, '');
  await expect(lockSubject(state, 'failback', subject)).rejects.toMatchObject({
    code: 'internal',
    message: expect.stringContaining(join(state, 'recovery-runs')),
  });
});

test('a command that cannot be put on record does not start', async () => {
  const state = newFolder();
  const lock = await lockSubject(state, 'cluster-loss', subject);
  mkdirSync(recordOf(state));
  expect(() => lock.commandStarts(['true'], true)).toThrow(
    expect.objectContaining({ code: 'internal', message: expect.stringContaining(recordOf(state)) }),
  );
  await lock.release();
});

test('a lock that cannot be taken is not said to be held by another run', async () => {
  const state = newFolder();
  await (await lockSubject(state, 'cluster-loss', subject)).release();
  // Where the directory of the lock belongs there is a file.
  writeFileSync(join(recordOf(state), '..', 'lock'), '');
  const taken = lockSubject(state, 'cluster-loss', subject);
  await expect(taken).rejects.not.toMatchObject({ code: 'state_locked' });
});

test('a command is on record until its end, by its process and by the mark of those that it started', async () => {
  const state = newFolder();
  const lock = await lockSubject(state, 'cluster-loss', subject);
  const command = ['sleep', '600.25'] as const;
  const marks = lock.commandStarts(command, true);
  expect(JSON.parse(readFileSync(recordOf(state), 'utf8'))).toMatchObject({ command, isDestructive: true });
  const child = await running(command, marks);
  lock.commandStarted(child.pid!);
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  expect(JSON.parse(readFileSync(recordOf(state), 'utf8'))).toMatchObject({
    pid: child.pid,
    // proc(5): the 22nd field is the time when the process began.
    start: `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${stat[22 - 3]}`,
  });
  expect(lock.commandEnded(false)).toBe(`pid ${child.pid}: sleep 600.25`);
  expect(existsSync(recordOf(state))).toBe(true);
  expect(lock.commandEnded(true)).toBeUndefined();
  expect(existsSync(recordOf(state))).toBe(false);
  await ended(child);
  lock.commandStarts(command, true);
  expect(lock.commandEnded(false)).toBeUndefined();
  expect(existsSync(recordOf(state))).toBe(false);
  // Somebody else may have removed the record.
  lock.commandStarts(command, true);
  rmSync(recordOf(state));
  expect(lock.commandEnded(true)).toBeUndefined();
  await lock.release();
});

interface Left {
  isDestructive: boolean;
  command?: [string, ...string[]];
  runs?: [string, ...string[]];
  /** Whether the run was killed before it recorded the process. */
  forgets?: boolean;
}

/** The record of a command that a killed run left, while a process of the command runs. */
async function left({ isDestructive, command = ['sleep', '600.25'], runs = command, forgets }: Left) {
  const state = newFolder();
  const lock = await lockSubject(state, 'cluster-loss', subject);
  const child = await running(runs, lock.commandStarts(command, isDestructive));
  if (!forgets) lock.commandStarted(child.pid!);
  await lock.release();
  const next = async () => {
    const again = await lockSubject(state, 'cluster-loss', subject);
    await again.release();
  };
  return { child, next, state };
}

test.each<[string, Left, string]>([
  ['a restore', { isDestructive: true }, 'pid PID'],
  ['a command that is not destructive', { isDestructive: false }, 'pid PID'],
  [
    'a restore whose process was not recorded',
    { isDestructive: true, forgets: true },
    'pid PID: sleep 600.25',
  ],
  [
    'what such a restore has started',
    { isDestructive: true, forgets: true, runs: ['sleep', '600.5'] },
    'pid PID: sleep 600.5',
  ],
  [
    'a script, as the last arguments of its interpreter',
    {
      isDestructive: false,
      forgets: true,
      command: ['/script', '600.75'],
      runs: ['sleep', '600.5', '600.75'],
    },
    'pid PID: sleep 600.5 600.75',
  ],
])('%s that outlived its run keeps out the next one', async (_, record, who) => {
  const { child, next } = await left(record);
  await expect(next()).rejects.toMatchObject({
    code: 'state_locked',
    message: expect.stringContaining(
      `a command of an earlier run is still running (${who.replace('PID', String(child.pid))}): ${(record.command ?? ['sleep', '600.25']).join(' ')}`,
    ),
  });
  await ended(child);
  await next();
});

test.each<[string, Left]>([
  [
    'what a start of the services left behind',
    { isDestructive: false, forgets: true, runs: ['sleep', '600.5'] },
  ],
  [
    'what a script left behind, which shares one of its arguments',
    {
      ...{ isDestructive: false, forgets: true, command: ['/script', '600.25', '600.75'] },
      runs: ['sleep', '600.5', '600.75'],
    },
  ],
])('%s does not', async (_, record) => {
  const { child, next } = await left(record);
  await next();
  await ended(child);
});

test('a command that has ended is over, although nobody has waited for it', async () => {
  const state = newFolder();
  const lock = await lockSubject(state, 'cluster-loss', subject);
  // Its parent becomes a program that waits for nothing, as the first process of a container may be. Only then the command ends.
  const parent = spawn('sh', ['-c', 'cat <&3 >/dev/null & echo $!; exec sleep 600.25 3<&-'], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout!, 'data')) as [Buffer];
  const pid = Number(line);
  const statusOf = (of: number) => readFileSync(`/proc/${of}/stat`, 'utf8');
  await until('the parent waits for nothing', () => statusOf(parent.pid!).includes('(sleep)') || undefined);
  (parent.stdio[3] as Writable).end();
  await until('it has ended', () => /\) Z /.test(statusOf(pid)) || undefined);
  lock.commandStarts(['true'], false);
  lock.commandStarted(pid);
  await lock.release();
  await (await lockSubject(state, 'cluster-loss', subject)).release();
  await ended(parent);
});

test('a later process of the same pid is another one', async () => {
  const { child, next, state } = await left({ isDestructive: false });
  const record = JSON.parse(readFileSync(recordOf(state), 'utf8'));
  writeFileSync(recordOf(state), JSON.stringify({ ...record, start: `${record.start}0` }));
  await next();
  await ended(child);
});
