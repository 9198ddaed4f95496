import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { VerifyAnswer } from '../../../src/probes/backups/evidence.ts';
import { readFiles } from '../../../src/probes/backups/files.ts';
import { replayWal } from '../../../src/probes/backups/log-chain.ts';
import { verifyBackup } from '../../../src/probes/backups/verify.ts';
import { readArchive } from '../../archived-log.ts';
import { flip } from '../../flip.ts';
import { newFolder } from '../../folder.ts';
import { connectionTo, hasPostgres, type Postgres, postgresProgram, startArchiving } from '../../postgres.ts';

const levels = { bytesPerSecond: Number.POSITIVE_INFINITY };
const verify = (path: string, level: 'header' | 'checksum' | 'full' = 'full'): Promise<VerifyAnswer> =>
  verifyBackup({ path, level, ...levels });

describe.skipIf(!hasPostgres)('backups of a real PostgreSQL', () => {
  let server: Postgres;
  let folder: string;
  let archive: string;
  const scratch = newFolder(afterAll);
  const connection = () => connectionTo(server);
  const copyOf = (path: string, name: string) => {
    const copy = join(scratch, name);
    cpSync(path, copy, { recursive: true });
    return copy;
  };

  beforeAll(async () => {
    ({ folder, archive, server } = await startArchiving());
    await server.query(
      'CREATE TABLE executions AS SELECT i, md5(i::text) AS state FROM generate_series(1, 40000) i',
    );
    await server.query("SELECT lo_from_bytea(0, decode(repeat('ab', 30000), 'hex'))");
  });
  afterAll(() => server?.stop());

  const dump = (name: string, ...args: string[]) => {
    const path = join(folder, name);
    postgresProgram('pg_dump', [...connection(), ...args, '-f', path, 'postgres']);
    return path;
  };

  test.each([
    ['compressed', []],
    ['uncompressed', ['-Z0']],
  ])('a %s dump in custom format is read to its end', async (name, args) => {
    const path = dump(`${name}.dump`, '-Fc', ...args);
    expect(await verify(path, 'header')).toMatchObject({ result: 'ok' });
    expect(await verify(path)).toMatchObject({
      result: 'ok',
      msg: expect.stringContaining('read to the end'),
    });
  });

  test('a dump that is cut off anywhere is found, as pg_restore finds it', async () => {
    const path = dump('whole.dump', '-Fc');
    const { size } = statSync(path);
    for (const share of [0.1, 0.5, 0.9, 0.999]) {
      const cut = copyOf(path, `cut-${share}.dump`);
      truncateSync(cut, Math.floor(size * share));
      expect(await verify(cut), `cut at ${share}`).toMatchObject({ result: 'corrupt' });
      expect(() => execFileSync('pg_restore', ['-f', '/dev/null', cut], { stdio: 'pipe' })).toThrow();
    }
  });

  test('a flipped bit in the data is found, which the table of contents does not show', async () => {
    const path = copyOf(dump('flip.dump', '-Fc'), 'flipped.dump');
    flip(path, Math.floor(statSync(path).size * 0.7));
    expect(execFileSync('pg_restore', ['--list', path], { encoding: 'utf8' })).toContain('executions');
    expect(await verify(path)).toMatchObject({ result: 'corrupt' });
    expect(await verify(path, 'header')).toMatchObject({ result: 'ok' });
  });

  test('a dump in SQL is complete with its last line only', async () => {
    const path = dump('plain.sql', '-Fp');
    expect(await verify(path)).toMatchObject({ result: 'ok' });
    execFileSync('gzip', ['-k', path]);
    expect(await verify(`${path}.gz`)).toMatchObject({ result: 'ok' });
    const lines = readFileSync(path, 'utf8').split('\n');
    const short = join(scratch, 'short.sql');
    writeFileSync(short, lines.slice(0, -12).join('\n'));
    execFileSync('gzip', [short]);
    // gzip itself accepts the file.
    execFileSync('gzip', ['-t', `${short}.gz`]);
    expect(await verify(`${short}.gz`)).toMatchObject({
      result: 'corrupt',
      msg: expect.stringContaining('last line'),
    });
    const cut = copyOf(`${path}.gz`, 'cut.sql.gz');
    truncateSync(cut, statSync(cut).size - 100);
    expect(await verify(cut)).toMatchObject({ result: 'corrupt' });
  });

  test('a dump with a checksum beside it is held against it', async () => {
    const path = copyOf(dump('summed.dump', '-Fc'), 'summed.dump');
    expect(await verify(path, 'checksum')).toMatchObject({ result: 'unknown' });
    execFileSync('sh', ['-c', `cd ${scratch} && sha256sum summed.dump > summed.dump.sha256`]);
    expect(await verify(path, 'checksum')).toMatchObject({ result: 'ok' });
    flip(path, 4000);
    expect(await verify(path, 'checksum')).toMatchObject({ result: 'corrupt' });
  });

  describe('a base backup', () => {
    const base = () => join(folder, 'base-20260101T000000Z');
    beforeAll(() => {
      postgresProgram('pg_basebackup', [
        ...connection(),
        '-D',
        base(),
        '-X',
        'none',
        '--checkpoint=fast',
        '--manifest-checksums=CRC32C',
      ]);
    });

    test('matches its manifest as pg_verifybackup says, with each kind of checksum', async () => {
      postgresProgram('pg_verifybackup', ['-n', base()]);
      expect(await verify(base())).toMatchObject({ result: 'ok' });
      const sha = join(folder, 'base-sha');
      postgresProgram('pg_basebackup', [
        ...connection(),
        '-D',
        sha,
        '-X',
        'none',
        '--checkpoint=fast',
        '--manifest-checksums=SHA256',
      ]);
      expect(await verify(sha)).toMatchObject({ result: 'ok' });
    });

    test.each([
      ['a flipped bit in a table', (path: string) => flip(join(path, 'global', '1262'), 5000)],
      ['a file that is missing', (path: string) => unlinkSync(join(path, 'global', '1262'))],
      ['a file that is too short', (path: string) => truncateSync(join(path, 'global', '1262'), 4096)],
      ['a flipped bit in the manifest', (path: string) => flip(join(path, 'backup_manifest'), 500)],
    ])('%s is found', async (name, harm) => {
      const harmed = copyOf(base(), name.replaceAll(' ', '-'));
      harm(harmed);
      expect(await verify(harmed)).toMatchObject({ result: 'corrupt' });
      expect(() => postgresProgram('pg_verifybackup', ['-n', harmed])).toThrow();
    });

    test('reaches as far as the archived log goes on from it without a gap', async () => {
      const nowMs = Date.now() + 120_000;
      await server.query('CREATE TABLE later AS SELECT generate_series(1, 1000)');
      for (let i = 0; i < 4; i++) {
        await server.query('SELECT pg_switch_wal()');
        await server.query(`INSERT INTO later VALUES (${i})`);
      }
      const last = await server.archiveWal();
      const source = {
        kind: 'files' as const,
        directory: folder,
        pattern: '^base-(?<time>\\d{8}T\\d{6}Z)$',
        settleMs: 0,
      };
      const { artifacts } = await readFiles(source, [], nowMs);
      expect(artifacts).toMatchObject([{ id: 'base-20260101T000000Z', method: 'postgres_base' }]);
      const wal = artifacts[0]!.wal!;
      expect(replayWal(wal, (await readArchive(archive, 'wal', nowMs)).log)).toMatchObject({
        last,
        isEnough: true,
      });

      const names = readdirSync(archive)
        .filter((name) => /^[0-9A-F]{24}$/.test(name))
        .sort();
      const taken = names.at(-2)!;
      const kept = readFileSync(join(archive, taken));
      unlinkSync(join(archive, taken));
      const broken = await readArchive(archive, 'wal', nowMs);
      expect(broken.gap).toContain('segments are missing');
      expect(replayWal(wal, broken.log)).toMatchObject({ last: names.at(-3), ends: `${taken} is missing` });
      writeFileSync(join(archive, taken), kept);
    });

    test('without its manifest is unfinished', async () => {
      const half = copyOf(base(), 'half');
      unlinkSync(join(half, 'backup_manifest'));
      const source = { kind: 'files' as const, directory: scratch, pattern: '^half$', settleMs: 0 };
      expect(await readFiles(source, [], Date.now() + 1000)).toMatchObject({
        artifacts: [],
        unfinished: [{ id: 'half' }],
      });
    });
  });

  test('a dump is no part of a write-ahead log', async () => {
    dump('alone.dump', '-Fc');
    appendFileSync(join(folder, 'alone.dump.tmp'), 'x');
    const source = { kind: 'files' as const, directory: folder, pattern: '^alone\\.dump$', settleMs: 1000 };
    expect(await readFiles(source, [], Date.now())).toMatchObject({ artifacts: [], unfinished: [] });
    expect(await readFiles(source, [], Date.now() + 5000)).toMatchObject({
      artifacts: [{ id: 'alone.dump', method: 'postgres_dump' }],
      unfinished: [{ id: 'alone.dump.tmp' }],
    });
  });
});
