import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import type { IntegrityLevel } from '../../core/reasons.ts';
import { readSnapshots, snapshotFault } from './cassandra-backups.ts';
import { filesOfFlush, flushFault } from './cassandra-incrementals.ts';
import { type BackupContent, corrupt, ok, unknown, type Verifiable, type VerifyAnswer } from './evidence.ts';
import {
  type Compression,
  compressionOf,
  createByteReader,
  decompress,
  encryptionOf,
  hashed,
  NoDecompressor,
  type Pace,
  readThrottled,
} from './formats/byte-stream.ts';
import {
  type BackupManifest,
  fileDigest,
  headOf,
  manifestFault,
  readBackupManifest,
  sidecarChecksum,
} from './formats/manifest.ts';
import { type PgDump, pgDumpMagic, readPgDumpContents, verifyPgDump } from './formats/pgdump.ts';
import type { SegmentsToVerify } from './formats/segments.ts';
import { joined, type LogRange } from './formats/sstable-statistics.ts';
import { UnknownFormat } from './formats/wal-segment.ts';
import { isSqlDump, readSqlDump } from './sql-dump.ts';
import { verifyByTool } from './verify-by-tool.ts';

/** A request to the verifying process, as JSON. */
export interface VerifyRequest extends Verifiable {
  /** Segments of a log in the directory `path`. */
  segments?: SegmentsToVerify;
  level: IntegrityLevel;
  bytesPerSecond: number;
}

/** About how many bytes a verification will read, for its progress only. Never throws. */
export async function bytesToRead(request: VerifyRequest): Promise<number> {
  const { path, snapshot, flush, segments, tool, level } = request;
  if (tool || (!segments && (level === 'none' || level === 'header'))) return 0;
  const sizeOf = async (file: string) => (await stat(file).catch(() => undefined))?.size ?? 0;
  const sum = async (sizes: readonly Promise<number>[]) =>
    (await Promise.all(sizes)).reduce((total, size) => total + size, 0);
  try {
    if (segments) return await sum(segments.names.map((name) => sizeOf(join(path, name))));
    if (snapshot !== undefined)
      return (await readSnapshots(path)).find(({ name }) => name === snapshot)?.sizeBytes ?? 0;
    if (flush) {
      return (await filesOfFlush(path, flush)).reduce((total, { sizeBytes }) => total + sizeBytes, 0);
    }
    if ((await stat(path)).isDirectory()) {
      const entries = await readdir(path, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile());
      return await sum(files.map(({ parentPath, name }) => sizeOf(join(parentPath, name))));
    }
    // The level `full` reads a file with a checksum beside it twice.
    const passes = (await sidecarChecksum(path)) && level === 'full' ? 2 : 1;
    return passes * (await sizeOf(path));
  } catch {
    return 0;
  }
}

/**
 * Verifies one backup. `header`: the backup has the beginning of its format, and a directory has every file of its manifest.
 * `checksum`: the backup matches the checksum beside it, or the checksum in its manifest. `full`: every byte is read; compressed
 * data decompresses, a dump of PostgreSQL is read to its end, a dump in SQL ends with the line that its tool writes last.
 * Segments of a log are read to their ends at any level. A fault of the backup is never thrown; throws if the backup cannot be
 * read.
 */
export async function verifyBackup(request: VerifyRequest & Pace): Promise<VerifyAnswer> {
  const { path, level } = request;
  if (level === 'none' && request.segments === undefined) return unknown('not verified');
  if (request.tool) return verifyByTool(path, request.tool);
  const stats = await stat(path);
  try {
    if (request.segments !== undefined) return await verifyLog(request, request.segments);
    if (request.snapshot !== undefined) return await verifySnapshot(request);
    if (request.flush !== undefined) return await verifyFlush(request, request.flush);
    return stats.isDirectory() ? await verifyDirectory(request) : await verifyFile(request);
  } catch (thrown) {
    if (thrown instanceof NoDecompressor || thrown instanceof UnknownFormat) return unknown(thrown.message);
    const code = systemCode(thrown);
    // Errors of the decompressor have codes, too (Z_DATA_ERROR, ERR_…); these are faults of the backup.
    if (code !== undefined && /^E(?!RR_)[A-Z]+$/.test(code)) throw thrown;
    return corrupt(errorText(thrown));
  }
}

async function verifyLog(request: VerifyRequest & Pace, segments: SegmentsToVerify): Promise<VerifyAnswer> {
  const { readSegmentContents } = await import('./formats/log-segments.ts');
  const contents = await readSegmentContents(request, segments);
  return { result: 'ok', msg: `${Object.keys(contents).length} segments read`, segments: contents };
}

async function verifyFile(request: VerifyRequest & Pace): Promise<VerifyAnswer> {
  if (request.level === 'full') return verifyContent(request.path, request);
  if (request.level === 'header') return verifyHeader(request.path);
  const sidecar = await sidecarChecksum(request.path);
  if (!sidecar) return unknown('there is no checksum beside it');
  const digest = await fileDigest(readThrottled(request.path, request), sidecar.algorithm);
  if (digest !== sidecar.digest) return corrupt(`does not match its ${sidecar.algorithm} checksum`);
  return ok(`matches its ${sidecar.algorithm} checksum`, { unread: notWhole('checksum') });
}

/**
 * Why a dump may not be whole. A checksum that was computed over half a dump matches it, and the beginning of a file does not
 * show its end.
 */
const notWhole = (level: IntegrityLevel) =>
  `integrity.level ${level} does not show whether the files are whole; set it to full`;

async function verifyHeader(path: string): Promise<VerifyAnswer> {
  const head = await headOf(path, 512);
  const content = { unread: notWhole('header') };
  if (head.length === 0) return corrupt('the file is empty');
  const compression = compressionOf(head);
  if (compression) return ok(`begins as ${compression}`, content);
  if (head.subarray(0, 5).equals(pgDumpMagic)) {
    const { dump } = await readPgDumpContents(
      createByteReader(readThrottled(path, { bytesPerSecond: Number.POSITIVE_INFINITY })),
    );
    return ok(`table of contents with ${dump.entries} entries`, content);
  }
  if (isSqlDump(head.toString('latin1'))) return ok('begins as a dump in SQL', content);
  return unknown('the format is not known');
}

/** Reads a file to its end, and compares it with the checksum beside it if there is one. */
async function verifyContent(path: string, pace: Pace): Promise<VerifyAnswer> {
  const sidecar = await sidecarChecksum(path);
  const [md5, sum] = [createHash('md5'), createHash(sidecar?.algorithm ?? 'md5')];
  const source = hashed(readThrottled(path, pace), md5, sum);
  const answer = await verifyStream(source, compressionOf(await headOf(path, 8)));
  // The bytes after the end of the content.
  for await (const _ of source);
  if (sidecar && sum.digest('hex') !== sidecar.digest)
    return corrupt(`does not match its ${sidecar.algorithm} checksum`);
  return answer.content ? { ...answer, content: { ...answer.content, md5: md5.digest('hex') } } : answer;
}

async function verifyStream(
  source: AsyncIterable<Buffer>,
  compression: Compression | undefined,
): Promise<VerifyAnswer> {
  const plain = compression ? decompress(source, compression) : source;
  const iterator = plain[Symbol.asyncIterator]();
  const first = await firstBytes(iterator, 1024);
  if (first.length === 0) return corrupt('the backup is empty');
  const all = replay(first, iterator);
  const inside = compressionOf(first);
  if (compression && inside)
    return notRestorable(all, `it is compressed twice, by ${inside} and ${compression}`);
  if (first.subarray(0, 5).equals(pgDumpMagic)) {
    if (compression)
      return notRestorable(
        all,
        `it is a dump in custom format inside of ${compression}, which pg_restore cannot read`,
      );
    return pgDumpAnswer(await verifyPgDump(createByteReader(all)));
  }
  if (isSqlDump(first.toString('latin1'))) {
    const { fault, msg, content } = await readSqlDump(all);
    return fault === undefined ? ok(msg, content) : corrupt(fault);
  }
  const encryption = encryptionOf(first);
  return notRestorable(
    all,
    encryption === undefined
      ? 'its content is not a dump of a known tool'
      : `it is encrypted (${encryption}), so that its content cannot be read`,
  );
}

/** Reads the rest of a file that no restore can use as it is, because the rest may show damage. */
async function notRestorable(rest: AsyncIterable<Buffer>, msg: string): Promise<VerifyAnswer> {
  for await (const _ of rest);
  return unknown(msg);
}

function pgDumpAnswer(dump: PgDump): VerifyAnswer {
  const { compression, database, startWall, withData, withoutData, withoutTable, tables } = dump;
  if (compression === 'lz4' || compression === 'zstd')
    return unknown(`data compressed by ${compression} was not decompressed; its framing is intact`);
  if (withData.length === 0) return corrupt('it has no data of any table (--schema-only)');
  if (withoutData.length > 0)
    return corrupt(`it has no data of ${withoutData.slice(0, 3).join(', ')} (--exclude-table-data)`);
  if (withoutTable.length > 0)
    return corrupt(`it has no definition of ${withoutTable.slice(0, 3).join(', ')} (--data-only)`);
  return ok(`${withData.length} tables and large objects read to the end`, {
    databases: [database],
    tables,
    startWall,
  });
}

async function firstBytes(iterator: AsyncIterator<Buffer>, length: number): Promise<Buffer> {
  let first: Buffer = Buffer.alloc(0);
  while (first.length < length) {
    const next = await iterator.next();
    if (next.done) break;
    first = Buffer.concat([first, next.value]);
  }
  return first;
}

async function* replay(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

async function verifyDirectory(request: VerifyRequest & Pace): Promise<VerifyAnswer> {
  const names = await readdir(request.path);
  if (names.includes('backup_manifest')) return verifyBaseBackup(request, names);
  if (names.some((name) => checkpointFiles.includes(name))) return verifyPhysical(request, names);
  return unknown('the format is not known');
}

async function verifySnapshot({
  path,
  snapshot: name,
  level,
  ...pace
}: VerifyRequest & Pace): Promise<VerifyAnswer> {
  const snapshot = (await readSnapshots(path)).find((each) => each.name === name);
  if (!snapshot) return corrupt('the snapshot is gone');
  const reading = readingAt(level, pace);
  const fault = await snapshotFault(snapshot, reading);
  if (fault !== undefined) return corrupt(fault);
  return ok(`${snapshot.files.length} files, each manifest complete`, contentOf(reading, level));
}

/** The reading of SSTables at a level, and the parts of the commit log that it finds, by the directories of the tables. */
function readingAt(level: IntegrityLevel, pace: Pace) {
  const found = new Map<string, LogRange[]>();
  if (level !== 'full') return undefined;
  return {
    found,
    read: (file: string) => readThrottled(file, pace),
    onRange: (table: string, range: LogRange) =>
      void found.set(table, joined([...(found.get(table) ?? []), range])),
  };
}

const contentOf = (reading: ReturnType<typeof readingAt>, level: IntegrityLevel): BackupContent =>
  reading === undefined ? { unread: notWhole(level) } : { commitLog: Object.fromEntries(reading.found) };

async function verifyFlush(
  { path, level, ...pace }: VerifyRequest & Pace,
  sstables: readonly string[],
): Promise<VerifyAnswer> {
  const files = await filesOfFlush(path, sstables);
  const reading = readingAt(level, pace);
  const fault = await flushFault(files, reading);
  return fault === undefined
    ? ok(`${files.length} files of incremental backups`, contentOf(reading, level))
    : corrupt(fault);
}

async function verifyBaseBackup(
  { path, level, ...pace }: VerifyRequest & Pace,
  names: string[],
): Promise<VerifyAnswer> {
  const manifest: BackupManifest = await readBackupManifest(path);
  if (names.some((name) => /\.tar(?:\.(?:gz|zst|lz4))?$/.test(name))) {
    if (level !== 'full') return unknown('tar archives are read at the level full only');
    const { verifyBaseArchives } = await import('./formats/base-archives.ts');
    const read = await verifyBaseArchives(path, names, manifest, pace);
    if (read.fault !== undefined) return corrupt(read.fault);
    return ok(`${manifest.files.length} files in archives match the manifest`, {
      ...beginningOf(manifest, read.label.toString()),
      systemId: systemIdOf(read.control),
    });
  }
  const fault = await manifestFault(path, manifest, level !== 'header', (file) => readThrottled(file, pace));
  if (fault !== undefined) return corrupt(fault);
  return ok(`${manifest.files.length} files ${level === 'header' ? 'are there' : 'match the manifest'}`, {
    ...beginningOf(manifest, await readFile(join(path, 'backup_label'), 'utf8')),
    ...(level === 'header' && { unread: notWhole(level) }),
    wal: await ownWal(join(path, 'pg_wal'), pace),
    systemId: systemIdOf(await headOf(join(path, 'global', 'pg_control'), 8)),
  });
}

/** Reads the segments of the log in the backup itself, which its manifest does not list. */
async function ownWal(directory: string, pace: Pace): Promise<BackupContent['wal']> {
  const names = (await readdir(directory).catch(() => []))
    .filter((name) => /^[0-9A-F]{24}$/.test(name))
    .sort();
  const newest = names.at(-1);
  if (newest === undefined) return undefined;
  const { readSegmentContents } = await import('./formats/log-segments.ts');
  return readSegmentContents({ path: directory, ...pace }, { log: 'wal', names, newest });
}

/**
 * When a base backup began, according to its label. Changes that a standby had not received by then are not in the backup, so
 * only the log shows which time the backup reaches.
 */
function beginningOf({ startMs }: BackupManifest, label: string): BackupContent {
  if (!/^BACKUP FROM: standby$/m.test(label)) return { startMs };
  return {
    unknown: 'it was taken from a standby, whose lag it does not state; only the archived log shows it',
  };
}

/** The system identifier, with which `pg_control` begins. */
const systemIdOf = (control: Buffer): string | undefined =>
  control.length < 8 ? undefined : control.readBigUInt64LE(0).toString();

/** The files that mariadb-backup and xtrabackup write when a backup is complete. */
export const checkpointFiles: readonly string[] = ['xtrabackup_checkpoints', 'mariadb_backup_checkpoints'];
const physicalInfo = ['xtrabackup_info', 'mariadb_backup_info', 'backup-my.cnf'];

async function verifyPhysical(
  { path, level, ...pace }: VerifyRequest & Pace,
  names: string[],
): Promise<VerifyAnswer> {
  if (!names.some((name) => physicalInfo.includes(name))) return corrupt('the information file is missing');
  if (!names.some((name) => name.startsWith('ibdata')))
    return corrupt('the system tablespace (ibdata) is missing');
  const { physicalContent, readTables } = await import('./physical.ts');
  const { missing, ...tables } = await readTables(path);
  if (missing !== undefined) return corrupt(`${missing} is missing`);
  const content = { ...(await physicalContent(path, names)), ...tables };
  if (level === 'header') {
    const unread = notWhole(level);
    return ok('checkpoints, information and the files of each table are there', { ...content, unread });
  }
  const { verifyInnodbFiles } = await import('./formats/innodb.ts');
  const { files, pages, unverified } = await verifyInnodbFiles(path, pace);
  if (unverified !== undefined) return unknown(unverified);
  return ok(`${pages} pages in ${files} files of InnoDB match their checksums`, content);
}
