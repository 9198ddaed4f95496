import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { takeLock } from '../../src/agent/state/lock.ts';
import { runs, testOnce } from '../size.ts';
import { afterRestart, loadedBed, temporaryDirectory } from './state/bed.ts';
import { holderStarter } from './state/holder-process.ts';

testOnce('the lock that a killed holder left is taken over', async () => {
  const directory = temporaryDirectory();
  const start = await holderStarter();
  const holder = start(directory);
  expect(await holder.line()).toBe('locked');
  await holder.kill();
  expect(readdirSync(join(directory, 'lock'))).toHaveLength(1);
  const { state } = await loadedBed({ directory });
  expect(readdirSync(join(directory, 'lock'))).toEqual([expect.stringMatching(`^${process.pid}-`)]);
  await state.close();
  expect(readdirSync(directory)).toEqual([]);
});

testOnce('the lock keeps no process alive: one that ends without giving it back is taken over', async () => {
  const directory = temporaryDirectory();
  const start = await holderStarter();
  const holder = start(directory, 'leave');
  expect(await holder.rest()).toEqual(['locked']);
  const { state } = await loadedBed({ directory });
  expect(state.status().degraded).toBeUndefined();
});

testOnce('without a umask the lock is not for everybody to write to', async () => {
  const directory = temporaryDirectory();
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
  const lock = await takeLock(directory);
  expect(statSync(join(directory, 'lock')).mode & 0o022).toBe(0);
  await lock.release();
});

test('of many that find it at once exactly one gets it, every time', async () => {
  const directory = temporaryDirectory();
  for (let round = 0; round < runs(60); round++) {
    await leaveDeadLock(directory);
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => takeLock(directory)));
    const got = tries.filter((one) => one.status === 'fulfilled');
    const refused = tries.filter((one) => one.status === 'rejected').map(({ reason }) => reason.code);
    expect(got, `round ${round}`).toHaveLength(1);
    expect(refused).toEqual(Array(7).fill('state_locked'));
    expect(await got[0]!.value.holds()).toBe(true);
    await got[0]!.value.release();
    expect(readdirSync(directory)).toEqual([]);
  }
});

testOnce('of several processes that find it at once exactly one gets it', async () => {
  const directory = temporaryDirectory();
  const start = await holderStarter();
  await leaveDeadLock(directory);
  const holders = Array.from({ length: 5 }, () => start(directory));
  const lines = await Promise.all(holders.map((holder) => holder.line()));
  const winner = holders[lines.indexOf('locked')]!;
  const others = lines.filter((line) => line !== 'locked');
  expect(others).toHaveLength(4);
  for (const line of others) expect(line).toMatch(new RegExp(`^state_locked .*pid ${winner.pid}`));
});

testOnce('killed again and again while it commits: a value once shown comes back', async () => {
  const directory = temporaryDirectory();
  const start = await holderStarter();
  let atLeast = 0;
  for (let round = 1; round <= 6; round++) {
    const holder = start(directory, 'count');
    expect(await holder.line()).toBe('locked');
    for (let i = 0; i < round * 7; i++) await holder.line();
    await holder.kill();
    const last = (await holder.rest()).at(-1) ?? 'shown 0';
    atLeast = Math.max(atLeast + round * 7, Number(/^shown (\d+)$/.exec(last)?.[1]));
    const { n } = await afterRestart({ directory });
    expect(n).toBeGreaterThanOrEqual(atLeast);
    expect(n).toBeLessThanOrEqual(atLeast + 1);
    atLeast = n!;
  }
});

/** Leaves what a killed holder leaves: a bound socket on which nobody listens, and a socket that never became the lock. */
async function leaveDeadLock(directory: string): Promise<void> {
  for (const home of ['lock', 'lock-0123456789ab']) {
    mkdirSync(join(directory, home));
    await leaveDeadSocket(join(directory, home), '1-0123456789ab');
  }
}

/**
 * Leaves a dead socket. Closing a server removes the socket at the path to which it was bound; a socket that was bound through
 * another path stays.
 */
async function leaveDeadSocket(home: string, name: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(join(home, 'bound'), resolve));
  renameSync(join(home, 'bound'), join(home, name));
  await new Promise((resolve) => server.close(resolve));
}
