import { execFile } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import type { IntegrityLevel } from '../../core/reasons.ts';
import { excerpt } from '../probe.ts';
import type { ReportFormat } from './block.ts';
import {
  compressionOf,
  createByteReader,
  decompress,
  NoDecompressor,
  type Pace,
  readThrottled,
} from './byte-stream.ts';
import { filesOfFlush, flushFault, readSnapshots, snapshotFault } from './cassandra-backups.ts';
import type { FlushWindow, Verifiable, VerifyAnswer } from './evidence.ts';
import {
  type BackupManifest,
  fileDigest,
  headOf,
  manifestFault,
  readBackupManifest,
  sidecarChecksum,
} from './manifest.ts';
import { pgDumpMagic, readPgDumpContents, verifyPgDump } from './pgdump.ts';
import type { SegmentsToVerify } from './segments.ts';

/** A request to the verifying process; JSON. */
export interface VerifyRequest extends Verifiable {
  /** Segments of a log in the directory `path`. */
  segments?: SegmentsToVerify;
  level: IntegrityLevel;
  bytesPerSecond: number;
}

/** About how many bytes a verification will read, for its progress only. Never throws. */
export async function bytesToRead(request: VerifyRequest): Promise<number> {
  const { path, snapshot, flush, segments, tool, level } = request;
  if (tool || level === 'none' || (level === 'header' && !segments)) return 0;
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
    // `full` reads a file again that has a checksum beside it.
    const passes = (await sidecarChecksum(path)) && level === 'full' ? 2 : 1;
    return passes * (await sizeOf(path));
  } catch {
    return 0;
  }
}

const ok = (msg: string): VerifyAnswer => ({ result: 'ok', msg });
const corrupt = (msg: string): VerifyAnswer => ({ result: 'corrupt', msg });
const unknown = (msg: string): VerifyAnswer => ({ result: 'unknown', msg });

/**
 * Verifies one backup. `header`: it begins as its format does, a directory has its manifest. `checksum`: it
 * matches the checksum beside it, or the one in its manifest. `full`: every byte is read; compressed data
 * decompresses, a dump of PostgreSQL is read to its end, a dump in SQL ends with the line that its tool writes
 * last. Never throws for what is wrong with the backup; throws when it cannot be read.
 */
export async function verifyBackup(request: VerifyRequest & Pace): Promise<VerifyAnswer> {
  const { path, level } = request;
  if (level === 'none') return unknown('not verified');
  if (request.tool) return verifyByTool(path, request.tool);
  const stats = await stat(path);
  try {
    if (request.segments !== undefined) return await verifyLog(request, request.segments);
    if (request.snapshot !== undefined) return await verifySnapshot(request);
    if (request.flush !== undefined) return await verifyFlush(request, request.flush);
    return stats.isDirectory() ? await verifyDirectory(request) : await verifyFile(request);
  } catch (thrown) {
    if (thrown instanceof NoDecompressor) return unknown(thrown.message);
    const code = systemCode(thrown);
    // Errors of the decompressor have codes too (Z_DATA_ERROR, ERR_…): those are the backup's.
    if (code !== undefined && /^E(?!RR_)[A-Z]+$/.test(code)) throw thrown;
    return corrupt(errorText(thrown));
  }
}

async function verifyLog(request: VerifyRequest & Pace, segments: SegmentsToVerify): Promise<VerifyAnswer> {
  const { verifySegments } = await import('./log-segments.ts');
  const { damaged, unverified, verified } = await verifySegments(request, segments);
  const [first] = Object.entries(damaged);
  if (first) return { ...corrupt(`${first[0]}: ${first[1]}`), damaged };
  return unverified === undefined ? ok(verified) : unknown(unverified);
}

async function verifyFile(request: VerifyRequest & Pace): Promise<VerifyAnswer> {
  if (request.level === 'header') return verifyHeader(request.path);
  const sidecar = await sidecarChecksum(request.path);
  if (sidecar) {
    const digest = await fileDigest(readThrottled(request.path, request), sidecar.algorithm);
    if (digest !== sidecar.digest) return corrupt(`does not match its ${sidecar.algorithm} checksum`);
  }
  if (request.level === 'full') return verifyContent(request.path, request);
  return sidecar
    ? ok(`matches its ${sidecar.algorithm} checksum`)
    : unknown('there is no checksum beside it');
}

async function verifyHeader(path: string): Promise<VerifyAnswer> {
  const head = await headOf(path, 512);
  if (head.length === 0) return corrupt('the file is empty');
  const compression = compressionOf(head);
  if (compression) return ok(`begins as ${compression}`);
  if (head.subarray(0, 5).equals(pgDumpMagic)) {
    const { dump } = await readPgDumpContents(
      createByteReader(readThrottled(path, { bytesPerSecond: Number.POSITIVE_INFINITY })),
    );
    return ok(`table of contents with ${dump.entries} entries`);
  }
  if (sqlDumps.some(({ first }) => first.test(head.toString('latin1')))) return ok('begins as a dump in SQL');
  return unknown('the format is not known');
}

/** Dumps in SQL, and the line that their tools write when all is written. */
const sqlDumps = [
  { tool: 'mysqldump', first: /^(?:\/\*M?!.*\n)?-- (?:MySQL|MariaDB) dump/, last: /^-- Dump completed/m },
  {
    tool: 'pg_dump',
    first: /^--\n-- PostgreSQL database (?:cluster )?dump/,
    last: /^-- PostgreSQL database (?:cluster )?dump complete/m,
  },
] as const;

/** How much of a dump's end is searched for its last line. */
const tailBytes = 4096;

async function verifyContent(path: string, pace: Pace): Promise<VerifyAnswer> {
  const compression = compressionOf(await headOf(path, 8));
  const source = readThrottled(path, pace);
  const plain = compression ? decompress(source, compression) : source;
  const iterator = plain[Symbol.asyncIterator]();
  const first = await firstBytes(iterator, 1024);
  if (first.length === 0) return corrupt('the backup is empty');
  const all = replay(first, iterator);
  if (first.subarray(0, 5).equals(pgDumpMagic)) {
    const dump = await verifyPgDump(createByteReader(all));
    if (dump.compression === 'lz4' || dump.compression === 'zstd') {
      return unknown(`data compressed by ${dump.compression} was not decompressed; its framing is whole`);
    }
    return ok(`${dump.withData.length} tables and large objects read to the end`);
  }
  const dump = sqlDumps.find((kind) => kind.first.test(first.toString('latin1')));
  let tail: Buffer = Buffer.alloc(0);
  let bytes = 0;
  for await (const chunk of all) {
    bytes += chunk.length;
    tail = Buffer.concat([tail, chunk.subarray(-tailBytes)]).subarray(-tailBytes);
  }
  if (dump) {
    return dump.last.test(tail.toString('latin1'))
      ? ok(`${bytes} bytes, with the last line of ${dump.tool}`)
      : corrupt(`the last line that ${dump.tool} writes is missing: the dump is not complete`);
  }
  return compression ? ok(`${bytes} bytes decompressed`) : unknown('the format is not known');
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
  const fault = await snapshotFault(snapshot, level === 'full', (file) => readThrottled(file, pace));
  return fault === undefined ? ok(`${snapshot.files.length} files, each manifest complete`) : corrupt(fault);
}

async function verifyFlush(
  { path, level, ...pace }: VerifyRequest & Pace,
  window: FlushWindow,
): Promise<VerifyAnswer> {
  const files = await filesOfFlush(path, window);
  const fault = await flushFault(files, level === 'full', (file) => readThrottled(file, pace));
  return fault === undefined ? ok(`${files.length} files of incremental backups`) : corrupt(fault);
}

async function verifyBaseBackup(
  { path, level, ...pace }: VerifyRequest & Pace,
  names: string[],
): Promise<VerifyAnswer> {
  const manifest: BackupManifest = await readBackupManifest(path);
  if (level === 'header') return ok(`manifest of ${manifest.files.length} files`);
  const archives = names.filter((name) => /\.tar(?:\.(?:gz|zst|lz4))?$/.test(name));
  if (archives.length > 0) {
    if (level === 'checksum')
      return unknown('files inside of tar archives are not compared with the manifest');
    for (const name of archives) {
      const answer = await verifyContent(join(path, name), pace);
      if (answer.result === 'corrupt') return corrupt(`${name}: ${answer.msg}`);
      if (!compressionOf(await headOf(join(path, name), 8))) {
        return unknown('files inside of tar archives are not compared with the manifest');
      }
    }
    return ok(`${archives.length} archives decompressed`);
  }
  const fault = await manifestFault(path, manifest, true, (file) => readThrottled(file, pace));
  return fault === undefined ? ok(`${manifest.files.length} files match the manifest`) : corrupt(fault);
}

/** What mariadb-backup and xtrabackup write when a backup is complete. */
export const checkpointFiles: readonly string[] = ['xtrabackup_checkpoints', 'mariadb_backup_checkpoints'];
const physicalInfo = ['xtrabackup_info', 'mariadb_backup_info', 'backup-my.cnf'];

async function verifyPhysical(
  { path, level, ...pace }: VerifyRequest & Pace,
  names: string[],
): Promise<VerifyAnswer> {
  if (!names.some((name) => physicalInfo.includes(name))) return corrupt('the information file is missing');
  if (!names.some((name) => name.startsWith('ibdata')))
    return corrupt('the system tablespace (ibdata) is missing');
  if (level === 'header') return ok('checkpoints, information and system tablespace are there');
  const { verifyInnodbFiles } = await import('./innodb.ts');
  const { files, pages, unverified } = await verifyInnodbFiles(path, pace);
  if (unverified !== undefined) return unknown(unverified);
  return ok(`${pages} pages in ${files} files of InnoDB match their checksums`);
}

interface Ended {
  status: number;
  stdout: string;
  stderr: string;
}

const maxOutputBytes = 16 << 20;
const shownBytes = 300;

/**
 * Has a tool verify one of its backups. Throws where it could not, as when its repository is locked: then nothing is
 * known of the backup.
 */
export async function verifyByTool(
  id: string,
  { format, argv }: NonNullable<Verifiable['tool']>,
): Promise<VerifyAnswer> {
  const ended = await run(argv);
  const answer = answersOf[format](id, ended);
  if (answer) return answer;
  const said = excerpt(`${ended.stderr}${ended.stdout}`, shownBytes);
  throw new Error(`${argv[0]}: exit status ${ended.status}: ${said}`);
}

/**
 * Runs it in the process group of the verifying process, so that it ends with it and has its priority. Throws if it
 * cannot be started, or is killed.
 */
function run([program = '', ...args]: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { maxBuffer: maxOutputBytes }, (thrown, stdout, stderr) => {
      if (thrown && typeof thrown.code !== 'number') reject(thrown);
      else resolve({ status: Number(thrown?.code ?? 0), stdout, stderr });
    });
  });
}

/** What the output says of a backup; undefined where the tool could not verify it. */
type AnswerOf = (id: string, ended: Ended) => VerifyAnswer | undefined;

const answersOf: Readonly<Record<ReportFormat, AnswerOf>> = {
  pgbackrest: pgBackRestAnswer,
  barman: barmanAnswer,
  walg: statusAnswer,
  json: statusAnswer,
};

/**
 * `pgbackrest verify --output=text --verbose` reads the whole repository, and ends with status 0 whatever it finds; it
 * lists the backups that are there.
 */
function pgBackRestAnswer(id: string, { status, stdout }: Ended): VerifyAnswer | undefined {
  if (status !== 0) return undefined;
  const listed = [...stdout.matchAll(/^ *backup: (\S+), status: (.+)$/gm)];
  const found = listed.find(([, label]) => label === id)?.[2];
  if (found?.startsWith('valid')) return { result: 'ok', msg: `pgbackrest verify: ${found}` };
  if (found !== undefined) return { result: 'corrupt', msg: `pgbackrest verify: ${found}` };
  // Without --verbose only backups with a fault are listed.
  if (/total WAL checked/.test(stdout) || listed.some(([, , what]) => what!.startsWith('valid')))
    return { result: 'corrupt', msg: `pgbackrest verify does not find ${id} in the repository` };
  return { result: 'unknown', msg: 'pgbackrest verify lists no backup; add --output=text --verbose' };
}

/** `barman verify-backup SERVER ID` runs pg_verifybackup; other errors have the same exit status. */
function barmanAnswer(_: string, { status, stdout, stderr }: Ended): VerifyAnswer | undefined {
  if (status === 0) return { result: 'ok', msg: 'barman verify-backup found no fault' };
  const said = `${stderr}\n${stdout}`;
  if (!said.includes('verify backup failure')) return undefined;
  const fault = /pg_verifybackup: error: (.+)/.exec(said)?.[1];
  return { result: 'corrupt', msg: fault ?? 'barman verify-backup found a fault' };
}

/** Of a program of one's own: 0 good, 1 damaged. */
function statusAnswer(_: string, { status, stdout, stderr }: Ended): VerifyAnswer | undefined {
  if (status === 0) return { result: 'ok', msg: excerpt(stdout, shownBytes) || 'its tool found no fault' };
  if (status !== 1) return undefined;
  return { result: 'corrupt', msg: excerpt(stderr || stdout, shownBytes) || 'its tool found a fault' };
}
