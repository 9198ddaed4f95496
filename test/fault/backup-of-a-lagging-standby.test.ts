import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { verifyBackup } from '../../src/probes/backups/verify.ts';
import {
  asPostgres,
  hasPostgres,
  ownedByPostgres,
  postgresFolder,
  postgresPrograms,
  startPostgres,
} from '../postgres.ts';

// The label of such a backup has the time at which it was begun; what the standby had received by then nobody says.
test.skipIf(!hasPostgres)('a base backup of a standby has no time of its own', async () => {
  const place = postgresFolder();
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const server = await startPostgres({ settings: ['wal_level=replica', 'max_wal_senders=4'] });
  onTestFinished(() => server.stop());
  const base = (port: number, name: string, ...more: string[]) => {
    const target = join(place, name);
    const from = ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', '-D', target];
    const program = join(postgresPrograms, 'pg_basebackup');
    const [first, ...rest] = asPostgres([program, ...from, '--checkpoint=fast', ...more]);
    execFileSync(first!, rest, { cwd: '/', stdio: 'pipe' });
    return target;
  };
  const content = async (path: string) => {
    const answer = await verifyBackup({ path, level: 'full', bytesPerSecond: 1e12 });
    expect(answer).toMatchObject({ result: 'ok' });
    return answer.content;
  };
  const own = base(server.port, 'own');
  expect(await content(own)).toMatchObject({ startMs: expect.any(Number), systemId: expect.any(String) });
  expect(await content(base(server.port, 'own-tar', '--format=tar'))).toMatchObject({
    startMs: expect.any(Number),
    systemId: expect.any(String),
  });

  const data = base(server.port, 'standby');
  writeFileSync(join(data, 'standby.signal'), '');
  ownedByPostgres(join(data, 'standby.signal'));
  const standby = await startPostgres({ data });
  onTestFinished(() => standby.stop());
  for (const format of ['plain', 'tar']) {
    const found = await content(base(standby.port, `of-standby-${format}`, `--format=${format}`));
    expect(found).not.toHaveProperty('startMs');
    expect(found).toMatchObject({ unknown: expect.stringContaining('standby') });
  }
});
