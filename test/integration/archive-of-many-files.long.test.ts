import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import type { Finding } from '../../src/probes/probe.ts';
import { newFolder } from '../folder.ts';
import { openArchive } from '../object-store.ts';

const newestSeconds = ({ gauges }: Finding) => gauges?.map(({ value }) => value);

test('a file archive of more files than one check looks at: known after the second, and at once after a restart', async () => {
  const directory = newFolder();
  const open = async () => {
    const archive = await openArchive({ uri: `${pathToFileURL(directory).href}/` });
    onTestFinished(archive.close);
    return archive;
  };
  mkdirSync(join(directory, 'many'));
  for (let i = 0; i < 21_000; i++) writeFileSync(join(directory, 'many', `${i}`), '');
  const newest = new Date('2036-05-06T07:08:09Z');
  writeFileSync(join(directory, 'many', 'newest.history'), 'x');
  utimesSync(join(directory, 'many', 'newest.history'), newest, newest);
  const { check } = await open();
  const first = await check();
  expect(first.gauges).toEqual([]);
  expect(first.msg).toContain('the next check continues the search');
  const second = await check(undefined, first.remember);
  expect(newestSeconds(second)).toEqual([newest.getTime() / 1000]);
  const restarted = await (await open()).check(undefined, JSON.parse(JSON.stringify(second.remember)));
  expect(newestSeconds(restarted)).toEqual([newest.getTime() / 1000]);
});
