import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { errors, loadedBed, temporaryDirectory } from './state/bed.ts';
import { faultyFs } from './state/faulty-fs.ts';

const asideIn = (directory: string) => readdirSync(directory).filter((name) => name.includes('.corrupt-'));

test.each<[string, why: string, (file: string) => void]>([
  ['of another program', 'foreign', (file) => writeFileSync(file, '{"version":1,"offsets":{}}')],
  ['that is empty', 'foreign', (file) => writeFileSync(file, '')],
  ['that is a directory', 'no snapshot', (file) => mkdirSync(file)],
  ['that is a pipe', 'no snapshot', (file) => void execFileSync('mkfifo', [file])],
  [
    'of 20 GB',
    'no snapshot, got 20000000000',
    (file) => {
      writeFileSync(file, 'svcstatL');
      truncateSync(file, 20e9);
    },
  ],
])('a file %s in place of the snapshot is set aside and reported; the agent starts', async (_, why, make) => {
  const directory = temporaryDirectory();
  make(join(directory, 'snapshot-a'));
  const { state, values, entries } = await loadedBed({ directory });
  expect(errors(entries)).toMatchObject([
    { fields: { file: join(directory, 'snapshot-a'), error: { message: expect.stringContaining(why) } } },
  ]);
  expect(asideIn(directory)).toHaveLength(1);
  values.add('n', 1);
  expect(await state.commit()).toEqual({ sequence: 1 });
});

test('at most four are kept aside, the newest; files that are not ours stay', async () => {
  const directory = temporaryDirectory();
  for (let day = 1; day <= 6; day++)
    writeFileSync(join(directory, `snapshot-b.corrupt-2020-01-0${day}`), `${day}`);
  mkdirSync(join(directory, 'snapshot-a.corrupt-2019-01-01', 'below'), { recursive: true });
  writeFileSync(join(directory, 'notes.txt'), 'kept');
  writeFileSync(join(directory, 'snapshot-a'), 'foreign');
  await loadedBed({ directory });
  const aside = asideIn(directory).sort();
  expect(aside.slice(1)).toEqual([4, 5, 6].map((day) => `snapshot-b.corrupt-2020-01-0${day}`));
  expect(readFileSync(join(directory, aside[0]!), 'utf8')).toBe('foreign');
  expect(readFileSync(join(directory, 'notes.txt'), 'utf8')).toBe('kept');
});

test('a snapshot that cannot be opened is set aside, not written over', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'snapshot-a'), 'unread');
  const fs = faultyFs();
  fs.plan = (operation, path) => (operation === 'open' && path.endsWith('snapshot-a') ? 'EIO' : undefined);
  const { entries } = await loadedBed({ directory, fs });
  expect(errors(entries)).toMatchObject([{ fields: { error: { code: 'EIO' } } }]);
  expect(asideIn(directory).map((name) => readFileSync(join(directory, name), 'utf8'))).toEqual(['unread']);
});

test('a file that cannot be set aside at the start is set aside, not written over, by the first commit that can', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'snapshot-a'), 'foreign');
  const fs = faultyFs();
  fs.plan = (operation) => (operation === 'rename' ? 'EIO' : undefined);
  const { state, values } = await loadedBed({ directory, fs });
  expect(state.status().degraded).toBe('no_directory');
  values.add('n', 1);
  expect((await state.commit()).degraded).toBe('no_directory');
  fs.plan = () => undefined;
  expect(await state.commit()).toEqual({ sequence: 1 });
  expect(asideIn(directory).map((name) => readFileSync(join(directory, name), 'utf8'))).toEqual(['foreign']);
});
