import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { type ArchiveSetting, openArchive, openObjectStore } from '../object-store.ts';

// Archived data must stay readable: if reads are enabled, the newest object is read back.

function directory(): string {
  const path = newFolder();
  return path;
}

async function checked(setting: ArchiveSetting) {
  const archive = await openArchive(setting);
  onTestFinished(archive.close);
  return archive.check();
}

test('reads the newest file, and not at all where that is turned off', async () => {
  const path = directory();
  mkdirSync(join(path, 'orders'));
  writeFileSync(join(path, 'orders', 'a.history'), '[{"events":[]}]');
  const uri = `file://${path}`;
  const finding = await checked({ uri });
  expect(finding.msg).toMatch(/; newest file from \S+; it can be read back$/);
  expect(finding.details).toMatchObject({ readable: true });
  expect((await checked({ uri, readCheck: false })).msg).not.toContain('reads back');
});

test('reads an empty file: a fault that names it', async () => {
  const path = directory();
  writeFileSync(join(path, 'a.history'), '');
  expect(await checked({ uri: `file://${path}` })).toMatchObject({
    reason: 'invalid_answer',
    msg: expect.stringContaining(`the newest file, ${join(path, 'a.history')}, is empty`),
  });
});

test('modes beyond those of the configuration are named; what a umask takes is none', async () => {
  const path = directory();
  writeFileSync(join(path, 'a.history'), 'x');
  chmodSync(path, 0o755);
  chmodSync(join(path, 'a.history'), 0o666);
  const uri = `file://${path}`;
  const modes = async (dirMode: string, fileMode: string) =>
    (await checked({ uri, dirMode, fileMode })).msg.split('; ').slice(3);
  expect(await modes('0700', '0640')).toEqual([
    'the directory has mode 0755, but dirMode is 0700',
    'its newest file has mode 0666, but fileMode is 0640',
  ]);
  expect(await modes('0777', '0666')).toEqual([]);
  expect(await modes('rwx', '')).toEqual([]);
});

test('reads the beginning of the newest object, but only if told to', async () => {
  const clock = manualClock();
  const store = await openObjectStore({ clock });
  onTestFinished(() => store.close());
  const setting = { uri: 's3://archive/h/', endpoint: store.url, clock };
  for (const [name, day] of [
    ['h/new', 9],
    ['h/old', 2],
  ] as const) {
    store.objects.set(name, `2026-01-0${day}T00:00:00.000Z`);
    store.contents.set(name, name === 'h/new' ? 'x'.repeat(100_000) : '');
  }
  expect((await checked(setting)).msg).toContain('newest object from');
  expect(store.changed).toEqual([]);
  const finding = await checked({ ...setting, readCheck: true });
  expect(finding.reason).toBeUndefined();
  expect(finding.msg).toMatch(/; it can be read back$/);
  expect(store.changed).toEqual(['GET h/new']);
});

test('reads an object that is empty, or that the store does not give: faults; one that is gone meanwhile is none', async () => {
  const clock = manualClock();
  const store = await openObjectStore({ clock });
  onTestFinished(() => store.close());
  const setting = { uri: 's3://archive/h/', endpoint: store.url, clock, readCheck: true };
  store.objects.set('h/a', '2026-01-02T00:00:00.000Z');
  // The object is listed, and does not exist.
  expect(await checked(setting)).toMatchObject({
    msg: expect.stringMatching(/deleted meanwhile$/),
  });
  store.contents.set('h/a', '');
  expect(await checked(setting)).toMatchObject({
    reason: 'invalid_answer',
    msg: 'the newest object, h/a, is empty',
  });
});
