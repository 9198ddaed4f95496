import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { replayWal } from '../../src/probes/backups/log-chain.ts';
import { readArchive } from '../archived-log.ts';
import { hasPostgres, ownedFolder, postgresFolder, startPostgres } from '../postgres.ts';

// A primary that was declared dead and is not, and its successor: both archive segments of one name. pgBackRest keeps both, with
// the checksums of their contents in their names, and then refuses to restore either (`archive-get`, "duplicates found").
test.skipIf(!hasPostgres)('a segment of which the archive has two contents ends the log', async () => {
  const place = postgresFolder();
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const archive = join(place, 'archive');
  ownedFolder(archive);
  // Servers with the same options are copies of one data directory.
  const start = () =>
    startPostgres({ archiveCommand: `cp %p "${archive}/%f-$(sha1sum < %p | cut -c 1-40)"` });
  const [first, second] = [await start(), await start()];
  onTestFinished(async () => {
    await first.stop();
    await second.stop();
  });
  await first.query('CREATE TABLE executions (i int)');
  const names: string[] = [];
  for (let n = 0; n < 3; n++) {
    await first.query(`INSERT INTO executions VALUES (${n})`);
    names.push(await first.archiveWal());
  }
  const from = `0/${Number.parseInt(names[0]!.slice(-2), 16)}000028`;
  const read = async () => {
    const { log, artifacts } = await readArchive(archive, 'wal', Date.now() + 1000);
    const { last, ends } = replayWal([{ timeline: 1, start: from, end: from }], log);
    return { last: last?.slice(0, 24), ends, damaged: artifacts.filter(({ fault }) => fault).length };
  };
  expect(await read()).toEqual({ last: names[2], ends: undefined, damaged: 0 });

  await second.query('CREATE TABLE tasks (i int)');
  expect(await second.archiveWal()).toBe(names[0]);
  const found = await read();
  expect(found).toMatchObject({ last: undefined, damaged: 2 });
  expect(found.ends).toMatch(/the archive has 2 different segments of this name/);
});
