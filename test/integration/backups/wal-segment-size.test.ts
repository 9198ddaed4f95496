import { readdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { readFiles } from '../../../src/probes/backups/files.ts';
import { replayWal } from '../../../src/probes/backups/log-chain.ts';
import { readArchive } from '../../archived-log.ts';
import { connectionTo, hasPostgres, postgresProgram, startArchiving } from '../../postgres.ts';

const isSegment = (name: string) => /^[0-9A-F]{24}$/.test(name);

// With `initdb --wal-segsize` the names of segments count differently, and a base backup needs other segments.
test.skipIf(!hasPostgres)(
  'a base backup reaches along the archived log of a server whose segments have 1 MiB',
  async () => {
    const { folder, archive, server } = await startArchiving({ initdb: ['--wal-segsize=1'] });
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    onTestFinished(() => server.stop());
    // This is beyond segment 256, where names of segments of 16 MiB would begin again.
    await server.query(
      'CREATE TABLE executions AS SELECT i, md5(i::text) AS state FROM generate_series(1, 30000) i',
    );
    postgresProgram('pg_basebackup', [
      ...connectionTo(server),
      ...['-D', join(folder, 'base'), '-X', 'none', '--checkpoint=fast'],
    ]);
    await server.query('INSERT INTO executions SELECT i, md5(i::text) FROM generate_series(1, 30000) i');
    const last = await server.archiveWal();

    const nowMs = Date.now() + 120_000;
    const files = { kind: 'files' as const, directory: folder, pattern: '^base$', settleMs: 0 };
    const { artifacts } = await readFiles(files, [], nowMs);
    const wal = artifacts[0]!.wal!;
    const plain = await readArchive(archive, 'wal', nowMs);
    expect(plain.log.walSegmentBytes).toBe(2 ** 20);
    expect(replayWal(wal, plain.log)).toMatchObject({ last, isEnough: true });

    // The files are as a compressing archive command leaves them: their size says nothing.
    for (const name of readdirSync(archive).filter(isSegment)) {
      writeFileSync(join(archive, `${name}.gz`), gzipSync(readFileSync(join(archive, name))));
      unlinkSync(join(archive, name));
    }
    const packed = await readArchive(archive, 'wal', nowMs);
    expect(packed.log.walSegmentBytes).toBe(2 ** 20);
    expect(replayWal(wal, packed.log)).toMatchObject({ last: `${last}.gz`, isEnough: true });

    // The server says where the backup ends; without that segment nothing continues it.
    const needed = readdirSync(archive)
      .find((name) => name.endsWith('.backup'))!
      .slice(0, 24);
    unlinkSync(join(archive, `${needed}.gz`));
    expect(replayWal(wal, (await readArchive(archive, 'wal', nowMs)).log)).toMatchObject({ isEnough: false });
  },
);
