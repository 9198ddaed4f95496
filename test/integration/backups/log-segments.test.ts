import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LogKind, SegmentsToVerify } from '../../../src/probes/backups/formats/segments.ts';
import { verifyBackup } from '../../../src/probes/backups/verify.ts';
import { flip } from '../../flip.ts';
import { newFolder } from '../../folder.ts';
import { hasMariadb, type Mariadb, startMariadb } from '../../mariadb.ts';
import {
  hasPostgres,
  ownedByPostgres,
  type Postgres,
  postgresProgram,
  postgresPrograms,
  startArchiving,
} from '../../postgres.ts';
import { onlyShort, runs, testOnce } from '../../size.ts';

/** Reads segments of a directory in their order, like the agent's child process. */
async function verify(
  path: string,
  log: LogKind,
  names: readonly string[],
  more: Partial<SegmentsToVerify> = {},
) {
  const segments = { log, names, newest: names.at(-1)!, ...more };
  const answer = await verifyBackup({ path, level: 'header', bytesPerSecond: 1e12, segments });
  const found = Object.entries(answer.segments!);
  const faults = found.flatMap(([name, { fault }]) => (fault === undefined ? [] : [[name, fault] as const]));
  const unverified = found.map(([, content]) => content.unverified).find((why) => why !== undefined);
  const result = faults.length > 0 ? 'corrupt' : unverified === undefined ? 'ok' : 'unknown';
  return { result, damaged: Object.fromEntries(faults), unverified, contents: answer.segments! };
}

/** Whole numbers below a limit that are the same in every run. */
function* numbersBelow(limit: number) {
  for (let seed = 12_345; ; ) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    yield Math.floor((seed / 2 ** 31) * limit);
  }
}

const succeeds = (run: () => unknown) => {
  try {
    run();
    return true;
  } catch {
    return false;
  }
};

describe.skipIf(!hasPostgres)('archived WAL of a real PostgreSQL', () => {
  let server: Postgres;
  let archive: string;
  let names: string[];
  const scratch = newFolder(afterAll);

  beforeAll(async () => {
    ({ archive, server } = await startArchiving({
      initdb: ['--wal-segsize=1'],
      settings: ['min_wal_size=2MB', 'max_wal_size=64MB'],
    }));
    await server.query('CREATE TABLE executions (i int, state text)');
    // The records have all lengths, some over several pages and into the next segment, and there is a long message.
    await server.query(
      'INSERT INTO executions SELECT i, repeat(md5(i::text), 1 + i % 60) FROM generate_series(1, 4000) i',
    );
    await server.query("SELECT pg_logical_emit_message(false, 'x', repeat('long', 800000))");
    await server.query('INSERT INTO executions VALUES (0)');
    // Its record is behind the commit, and states when the checkpoint began, in whole seconds.
    await server.query('CHECKPOINT');
    await server.query('SELECT pg_switch_wal()');
    await server.query('CHECKPOINT');
    await server.archiveWal();
    names = readdirSync(archive).sort();
    expect(names.length).toBeGreaterThan(6);
  });
  afterAll(() => server?.stop());

  testOnce('is good, together and one by one', async () => {
    expect(await verify(archive, 'wal', names)).toMatchObject({ result: 'ok' });
    for (const name of names) expect(await verify(archive, 'wal', [name])).toMatchObject({ result: 'ok' });
  });

  testOnce('each shows its newest commit, as pg_waldump prints it', async () => {
    const { contents } = await verify(archive, 'wal', names);
    let shown = 0;
    let newestMs = 0;
    for (const name of names) {
      const { stdout } = spawnSync(
        join(postgresPrograms, 'pg_waldump'),
        ['-r', 'Transaction', join(archive, name)],
        {
          encoding: 'utf8',
          env: { ...process.env, TZ: 'UTC' },
          maxBuffer: 1 << 28,
        },
      );
      const last = [...stdout.matchAll(/desc: COMMIT (\S+ \S+) UTC/g)].at(-1)?.[1];
      if (last === undefined && contents[name]!.newestMs === undefined) continue;
      shown += 1;
      // A segment with a checkpoint alone says nothing about a time before the commits in the segments before it.
      if (last !== undefined) newestMs = Math.floor(Date.parse(`${last.replace(' ', 'T')}Z`));
      expect(contents[name]!.newestMs).toBeGreaterThanOrEqual(newestMs);
    }
    expect(shown).toBeGreaterThan(0);
  });

  test('whatever pg_waldump finds, the agent finds: a byte flipped anywhere', async () => {
    const offsets = numbersBelow(2 ** 20);
    let found = 0;
    const rounds = runs(40);
    for (let round = 0; round < rounds; round++) {
      const place = join(scratch, 'flipped');
      cpSync(archive, place, { recursive: true });
      // The switch cuts the last segment short: the rest of it is zeros.
      const name = names[round % names.length]!;
      const at = round < 4 ? 2 * round : offsets.next().value!;
      flip(join(place, name), at);
      ownedByPostgres(place);
      const isFine = succeeds(() =>
        postgresProgram('pg_waldump', ['-q', '-p', place, names[0]!, names.at(-1)!]),
      );
      const answer = await verify(place, 'wal', names);
      if (!isFine) expect(answer, `${name} at ${at}`).toMatchObject({ result: 'corrupt' });
      if (answer.result === 'corrupt') found += 1;
      rmSync(place, { recursive: true });
    }
    // The rest are gaps between records, which nobody reads.
    expect(found).toBeGreaterThanOrEqual(0.85 * rounds);
  });

  testOnce('it says which segment is damaged', async () => {
    const place = join(scratch, 'one');
    cpSync(archive, place, { recursive: true });
    flip(join(place, names[2]!), 300_000);
    truncateSync(join(place, names[4]!), 2 ** 19);
    const { damaged } = await verify(place, 'wal', names);
    expect(Object.keys(damaged!)).toEqual([names[2], names[4]]);
    expect(damaged![names[4]!]).toBe('it is cut off');
  });

  testOnce('a segment under the name of another, one that is empty, something else', async () => {
    const place = join(scratch, 'names');
    mkdirSync(place);
    copyFileSync(join(archive, names[1]!), join(place, names[2]!));
    writeFileSync(join(place, names[3]!), '');
    writeFileSync(join(place, names[4]!), Buffer.alloc(2 ** 20, 'x'));
    const { damaged } = await verify(place, 'wal', [names[1]!, names[2]!, names[3]!, names[4]!]);
    expect(damaged).toEqual({
      [names[2]!]: 'its position in the log does not match its name',
      [names[3]!]: 'it is cut off',
      [names[4]!]: 'it does not begin as a WAL segment',
    });
  });

  testOnce('a record that begins in one segment and ends in the next', async () => {
    const long = names.findIndex(
      (_, index) => index > 1 && readFileSync(join(archive, names[index]!)).readUInt16LE(2) & 1,
    );
    const place = join(scratch, 'across');
    cpSync(archive, place, { recursive: true });
    // The rest of a record comes after the header of the first page.
    flip(join(place, names[long]!), 41);
    expect(await verify(place, 'wal', [names[long]!])).toMatchObject({ result: 'ok' });
    const before = names[long - 1]!;
    const { remainder } = (await verify(place, 'wal', [before])).contents[before]!.wal!;
    expect(await verify(place, 'wal', [names[long]!], { after: before, remainder })).toMatchObject({
      result: 'corrupt',
    });
  });

  testOnce.each(['gzip', 'zstd', 'lz4'])('compressed by %s', async (program) => {
    const suffix = { gzip: 'gz', zstd: 'zst', lz4: 'lz4' }[program]!;
    if (!succeeds(() => execFileSync(program, ['--version'], { stdio: 'pipe' }))) return;
    const place = join(scratch, program);
    mkdirSync(place);
    const compressed = names.map((name) => `${name}.${suffix}`);
    for (const name of names) {
      const out = execFileSync(program, ['-c', join(archive, name)], { maxBuffer: 2 ** 24, stdio: 'pipe' });
      writeFileSync(join(place, `${name}.${suffix}`), out);
    }
    expect(await verify(place, 'wal', compressed)).toMatchObject({ result: 'ok' });
    const plain = readFileSync(join(archive, names[2]!));
    plain[200_000]! ^= 1;
    writeFileSync(join(place, 'bad'), plain);
    writeFileSync(
      join(place, compressed[2]!),
      execFileSync(program, ['-c', join(place, 'bad')], { maxBuffer: 2 ** 24, stdio: 'pipe' }),
    );
    truncateSync(join(place, compressed[3]!), 5000);
    const { damaged } = await verify(place, 'wal', compressed);
    expect(Object.keys(damaged!)).toEqual([compressed[2], compressed[3]]);
  });

  testOnce('a checksum in the name, a suffix that nobody knows, one that is gone', async () => {
    const place = join(scratch, 'odd');
    mkdirSync(place);
    const plain = readFileSync(join(archive, names[0]!));
    const sum = execFileSync('sha1sum', [join(archive, names[0]!)], { encoding: 'utf8' }).slice(0, 40);
    const right = `${names[0]}-${sum}.gz`;
    const wrong = `${names[0]}-${'0'.repeat(40)}.gz`;
    for (const name of [right, wrong]) writeFileSync(join(place, name), gzipSync(plain));
    writeFileSync(join(place, `${names[1]}.br`), plain.subarray(100));
    expect(await verify(place, 'wal', [right])).toMatchObject({ result: 'ok' });
    expect((await verify(place, 'wal', [wrong])).damaged).toEqual({
      [wrong]: 'it does not match the checksum in its name',
    });
    expect(await verify(place, 'wal', [`${names[1]}.br`])).toMatchObject({ result: 'unknown' });
    expect(await verify(place, 'wal', ['000000010000000000000099', right])).toMatchObject({ result: 'ok' });
    // The version is a future one.
    const later = Buffer.from(plain);
    later.writeUInt16LE(0xd200, 0);
    writeFileSync(join(place, names[0]!), later);
    expect(await verify(place, 'wal', [names[0]!])).toMatchObject({ result: 'unknown' });
  });
});

onlyShort(describe.skipIf(!hasMariadb))('archived binary log of a real MariaDB', () => {
  let server: Mariadb;
  let names: string[];
  const place = newFolder(afterAll);
  const copy = () => {
    for (const name of names) copyFileSync(join(server.folder, 'data', name), join(place, name));
  };

  beforeAll(async () => {
    server = await startMariadb('--log-bin=bin', '--server-id=1', '--binlog-checksum=CRC32');
    await server.sql('CREATE DATABASE svc');
    await server.sql('CREATE TABLE svc.executions (i INT PRIMARY KEY, state LONGTEXT)');
    for (let file = 0; file < 3; file++) {
      await server.sql(
        `INSERT INTO svc.executions SELECT ${file * 1000} + seq, SHA1(seq) FROM svc.seq_1_to_500`,
      );
      await server.sql(`INSERT INTO svc.executions VALUES (${-1 - file}, REPEAT('x', 300000))`);
      await server.sql('FLUSH BINARY LOGS');
    }
    names = (await server.sql('SHOW BINARY LOGS')).map((row) => String(row.Log_name));
    copy();
  });
  afterAll(() => server?.stop());

  test('is good', async () => {
    expect(await verify(place, 'binlog', names)).toMatchObject({ result: 'ok' });
  });

  test('a byte flipped anywhere is found', async () => {
    const size = readFileSync(join(place, names[1]!)).length;
    const offsets = numbersBelow(size);
    for (let round = 0; round < 40; round++) {
      const at = round < 10 ? round : offsets.next().value!;
      copy();
      flip(join(place, names[1]!), at);
      expect((await verify(place, 'binlog', names)).damaged, `at ${at}`).toEqual({
        [names[1]!]: expect.any(String),
      });
    }
    copy();
  });

  test('a file that is cut off within an event, or between two', async () => {
    const whole = readFileSync(join(place, names[1]!));
    truncateSync(join(place, names[1]!), whole.length - 7);
    expect((await verify(place, 'binlog', names)).damaged).toEqual({ [names[1]!]: 'it is cut off' });
    let at = 4;
    let last = at;
    while (at < whole.length) {
      last = at;
      at += whole.readUInt32LE(at + 9);
    }
    writeFileSync(join(place, names[1]!), whole.subarray(0, last));
    expect((await verify(place, 'binlog', names)).damaged).toEqual({
      [names[1]!]: 'it is cut off: the event that a server writes last is missing',
    });
    copy();
  });

  test('the newest may still be written; one that a killed server left is whole', async () => {
    await server.sql("INSERT INTO svc.executions VALUES (-9, 'x')");
    copy();
    const newest = names.at(-1)!;
    expect(await verify(place, 'binlog', [newest])).toMatchObject({ result: 'ok' });
    const { length } = readFileSync(join(place, newest));
    truncateSync(join(place, newest), length - 5);
    // Without the event that is cut off, the file shows what comes before it.
    expect((await verify(place, 'binlog', [newest])).contents[newest]).toMatchObject({
      binlog: { isClosed: false, isCut: true },
    });
    copy();
    // This is the same file after another one followed it.
    expect(await verify(place, 'binlog', [newest], { newest: 'bin.999999' })).toMatchObject({ result: 'ok' });
  });

  test('without checksums its form is all that can be verified', async () => {
    await server.sql('SET GLOBAL binlog_checksum = NONE');
    await server.sql("INSERT INTO svc.executions VALUES (-10, 'x')");
    await server.sql('FLUSH BINARY LOGS');
    const rows = await server.sql('SHOW BINARY LOGS');
    const name = String(rows.at(-2)!.Log_name);
    copyFileSync(join(server.folder, 'data', name), join(place, name));
    expect(await verify(place, 'binlog', [name])).toMatchObject({
      result: 'unknown',
      unverified: expect.stringContaining('binlog_checksum = NONE'),
    });
    unlinkSync(join(place, name));
  });
});
