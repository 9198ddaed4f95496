import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readFiles } from '../../src/probes/backups/files.ts';
import { buildsUpon } from '../../src/probes/backups/incremental-parent.ts';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import { newFolder } from '../folder.ts';
import { available } from '../installed.ts';
import { hasMariadb, type Mariadb, startMariadb } from '../mariadb.ts';

const has = hasMariadb && available('mariadb-backup', existsSync('/usr/bin/mariadb-backup'));

// The tool takes the log sequence number of the backup before from its directory, and reads the pages of whatever server it
// reaches. What it makes of another server looks like an increment, and a restore with it is damaged.
test.skipIf(!has)('an increment of another server builds upon no backup of this one', async () => {
  const place = newFolder();
  const servers = [await startMariadb('--log-bin=bin', '--server-id=1'), await startMariadb('--log-bin=bin')];
  onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))));
  for (const server of servers) {
    await server.sql('CREATE DATABASE svc');
    await server.sql('CREATE TABLE svc.executions (i INT PRIMARY KEY)');
  }
  const [own, other] = servers as [Mariadb, Mariadb];
  await own.sql('INSERT INTO svc.executions VALUES (1)');
  const copy = (of: Mariadb, name: string, ...more: string[]) => {
    const from = [`--socket=${join(of.folder, 's')}`, `--datadir=${join(of.folder, 'data')}`];
    const target = `--target-dir=${join(place, name)}`;
    execFileSync('mariadb-backup', ['--no-defaults', '--backup', '--user=root', ...from, target, ...more], {
      stdio: 'pipe',
    });
  };
  copy(own, 'full');
  await own.sql('INSERT INTO svc.executions VALUES (2)');
  copy(own, 'increment', `--incremental-basedir=${join(place, 'full')}`);
  copy(other, 'stranger', `--incremental-basedir=${join(place, 'full')}`);
  const source = { kind: 'files', directory: place, pattern: '.', settleMs: 0 } as const;
  const { artifacts } = await readFiles(source, [], Date.now());
  const verified = await Promise.all(
    artifacts.map(async (artifact) => {
      const request = { path: artifact.verify!.path, level: 'header', bytesPerSecond: 1e12 } as const;
      const { content } = await verifyBackup(request);
      expect(content!.serverId).toMatch(/^[0-9a-f]{32}$/);
      return [artifact.id, { ...artifact, content }] as const;
    }),
  );
  const { full, increment, stranger } = Object.fromEntries(verified);
  expect(stranger!.lsn!.from).toBe(full!.lsn!.to);
  expect(buildsUpon(increment!, full!)).toBe(true);
  expect(buildsUpon(stranger!, full!)).toBe(false);
});
