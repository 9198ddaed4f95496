import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadedBed, temporaryDirectory } from '../../fault/state/bed.ts';
import { faultyFs } from '../../fault/state/faulty-fs.ts';
import { notedText } from '../../fault/state/values.ts';

/** The content of a directory, with what a write or a rename would change. */
const listing = (directory: string) =>
  readdirSync(directory).map((name) => [name, statSync(join(directory, name), { bigint: true }).ctimeNs]);

test('what is shown is what was counted before the call, once it is on disk', async () => {
  const directory = temporaryDirectory();
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  expect(values.shown()).toEqual({});
  const committed = state.commit();
  values.add('n', 1);
  await committed;
  values.add('n', 1);
  expect(values.shown()).toEqual({ n: 2 });
  expect(await state.commit()).toEqual({ sequence: 2 });
  expect(values.shown()).toEqual({ n: 3 });
});

test('callers that come while a commit writes share one commit, whose freeze has what they counted', async () => {
  const fs = faultyFs();
  const { state, values } = await loadedBed({ directory: temporaryDirectory(), fs });
  const late: Promise<number>[] = [];
  const commitAndRead = async () => {
    await state.commit();
    return values.shown().n!;
  };
  fs.plan = (operation) => {
    if (operation === 'write' && late.length < 3) {
      values.add('n', 1);
      late.push(commitAndRead(), commitAndRead(), commitAndRead());
    }
    return undefined;
  };
  values.add('n', 1);
  expect(await commitAndRead()).toBe(1);
  expect(await Promise.all(late)).toEqual([2, 2, 2]);
  expect(state.status().sequence).toBe(2);
});

test('nothing is shown before the rename', async () => {
  const fs = faultyFs();
  const { state, values } = await loadedBed({ directory: temporaryDirectory(), fs });
  const shownAt: Record<string, unknown> = {};
  fs.plan = (operation) => {
    shownAt[operation] = values.shown();
    return undefined;
  };
  values.add('n', 1);
  await state.commit();
  expect([shownAt.open, shownAt.write, shownAt.rename]).toEqual([{}, {}, {}]);
  expect(values.shown()).toEqual({ n: 1 });
});

test('what changes after the freeze is in neither values nor sections, even if a section is a live buffer', async () => {
  const directory = temporaryDirectory();
  const fs = faultyFs();
  const live = Buffer.from('offset 1');
  const { state, values } = await loadedBed({
    directory,
    fs,
    durables: [{ ...notedText('logs'), freeze: () => live }],
  });
  values.add('n', 1);
  fs.plan = (operation) => {
    if (operation === 'open') {
      values.add('n', 1);
      live.write('offset 2');
    }
    return undefined;
  };
  await state.commit();
  await state.close();
  const after = notedText('logs');
  const again = await loadedBed({ directory, durables: [after] });
  expect([after.text, again.values.counted()]).toEqual(['offset 1', { n: 1 }]);
});

test('nothing is written while nothing changes; the state still counts as up to date', async () => {
  const directory = temporaryDirectory();
  const text = notedText('logs', 'a');
  const { state, values, clock } = await loadedBed({ directory, durables: [text] });
  values.add('n', 1);
  await state.commit();
  const before = listing(directory);
  clock.advance(60_000);
  expect(await state.commit()).toEqual({ sequence: 1 });
  expect(listing(directory)).toEqual(before);
  expect(state.status()).toEqual({
    directory,
    sequence: 1,
    degraded: undefined,
    failures: 0,
    lastCommitMs: clock.nowMs(),
  });
  text.text = 'b';
  expect(await state.commit()).toEqual({ sequence: 2 });
});

test('sequences go on after a restart', async () => {
  const directory = temporaryDirectory();
  for (let sequence = 1; sequence <= 3; sequence++) {
    const { state, values } = await loadedBed({ directory });
    expect(state.status().sequence).toBe(sequence - 1);
    values.add('n', 1);
    expect(await state.commit()).toEqual({ sequence });
    // The newest snapshot is never overwritten.
    expect(readdirSync(directory)).toContain(sequence % 2 === 1 ? 'snapshot-a' : 'snapshot-b');
    await state.close();
  }
});

test.each([
  ['with fsync the file is synced before the rename and the directory after it', true],
  ['without fsync nothing is synced', false],
])('%s, and everything is closed', async (_, fsync) => {
  const fs = faultyFs();
  const { state, values } = await loadedBed({ directory: temporaryDirectory(), fs, fsync });
  const operations: string[] = [];
  fs.plan = (operation) => {
    operations.push(operation);
    return undefined;
  };
  values.add('n', 1);
  await state.commit();
  const unsynced = ['open', 'write', 'close', 'rename'];
  const synced = ['open', 'write', 'datasync', 'close', 'rename', 'open', 'sync', 'close'];
  expect(operations).toEqual(fsync ? synced : unsynced);
});

test('a durable whose freeze throws fails its commit and shows nothing; the next one goes on', async () => {
  const text = notedText('logs');
  const freeze = text.freeze;
  const { state, values, entries } = await loadedBed({ directory: temporaryDirectory(), durables: [text] });
  values.add('n', 1);
  text.freeze = () => {
    throw new Error('cannot freeze');
  };
  await expect(state.commit()).rejects.toThrow('cannot freeze');
  expect(values.shown()).toEqual({});
  text.freeze = freeze;
  expect(await state.commit()).toEqual({ sequence: 1 });
  expect(values.shown()).toEqual({ n: 1 });
  expect(entries).toEqual([]);
});

test('a content that is too large for a snapshot is not written, and shown all the same', async () => {
  const { state, values } = await loadedBed({ directory: temporaryDirectory() });
  values.add('n', 1);
  await state.commit();
  const { freeze, publish } = values;
  // The table only claims to be so long.
  values.freeze = () => ({ ...freeze(), table: { length: 2 ** 30 } as Uint8Array });
  let published = 0;
  values.publish = () => void published++;
  expect(await state.commit()).toEqual({ sequence: 1, degraded: 'write' });
  expect(published).toBe(1);
  expect(state.status().error).toContain('state snapshot: too large');
  Object.assign(values, { freeze, publish });
  values.add('n', 1);
  expect((await state.commit()).degraded).toBeUndefined();
});

test('close lets a commit end, gives the directory back, and nothing is committed after it', async () => {
  const directory = temporaryDirectory();
  const { state, values } = await loadedBed({ directory });
  values.add('n', 1);
  const committed = state.commit();
  await state.close();
  expect(await committed).toEqual({ sequence: 1 });
  await expect(state.commit()).rejects.toMatchObject({ code: 'internal' });
  expect(readdirSync(directory)).toEqual(['snapshot-a']);
});
