import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { opendir, readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import {
  type Artifact,
  type BackupMethod,
  type Evidence,
  noEvidence,
  unlessMissing,
  unreadable,
} from './evidence.ts';
import { compressionOf } from './formats/byte-stream.ts';
import { headOf, readBackupManifest } from './formats/manifest.ts';
import { pgDumpMagic } from './formats/pgdump.ts';
import { type RunRecord, startOfRun } from './journal.ts';
import type { BackupSource } from './source-blocks.ts';
import { checkpointFiles } from './verify.ts';

type FilesSource = BackupSource & { kind: 'files' };

/** Maximum number of entries of a directory. More entries are an error: a part of them would be misleading. */
const mostEntries = 20_000;

/** The names in a directory; undefined if it does not exist. Throws `evidence_unreadable` if it cannot be read. */
export async function listBackupDirectory(directory: string): Promise<string[] | undefined> {
  const names = await unlessMissing(directory, firstNames(directory));
  if (names === undefined || names.length <= mostEntries) return names;
  throw unreadable(
    `${directory} has more than ${mostEntries} entries, and the agent reads no more; remove old ones, or give each backup a directory of its own`,
  );
}

/** Reads only as many names as show that there are too many: the names of a million files take 100 MB. */
async function firstNames(directory: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of await opendir(directory, { bufferSize: 1024 })) {
    names.push(name);
    if (names.length > mostEntries) break;
  }
  return names;
}

/** The status of a file; undefined if it was removed meanwhile. Throws `evidence_unreadable` if it cannot be read. */
export async function statOf(path: string): Promise<Stats | undefined> {
  return unlessMissing(path, stat(path));
}

/** Matches names of temporary files, which no finished backup has. */
export const temporaryName = /(?:^\.)|\.(?:tmp|temp|part|partial|incomplete|inprogress)$|~$/i;
const companion = /\.(?:sha512|sha256|sha1|md5|ok|done|json)$/;

/** Backups of a directory whose names match: dumps as files, base and physical backups as directories. */
export async function readFiles(
  { directory, pattern, settleMs, sentinel, timeZone, takenFrom }: FilesSource,
  runs: readonly RunRecord[],
  nowMs: number,
): Promise<Evidence> {
  const names = await listBackupDirectory(directory);
  if (!names) return noEvidence(directory);
  const there = new Set(names);
  const matches = new RegExp(pattern, 'u');
  const artifacts: Artifact[] = [];
  const unfinished: { id: string; sinceMs: number }[] = [];
  let unsettled = 0;
  for (const name of names.sort()) {
    const match = matches.exec(name);
    const isTemporary =
      temporaryName.test(name) && (match !== null || matches.test(name.replace(temporaryName, '')));
    if ((!match && !isTemporary) || (companion.test(name) && there.has(name.replace(companion, ''))))
      continue;
    const path = join(directory, name);
    const stats = await statOf(path);
    if (!stats) continue;
    const found = stats.isDirectory()
      ? await readDirectoryBackup(path)
      : { sizeBytes: stats.size, lastMs: stats.mtimeMs, changedMs: stats.mtimeMs };
    const lastMs = Math.max(stats.mtimeMs, found.lastMs);
    const isSettled = nowMs - Math.max(stats.mtimeMs, found.changedMs) >= settleMs;
    const isComplete =
      !isTemporary && !found.isIncomplete && (sentinel === undefined || there.has(`${name}${sentinel}`));
    if (isComplete && !isSettled) unsettled += 1;
    if (!isComplete && isSettled) unfinished.push({ id: name, sinceMs: lastMs });
    if (!isComplete || !isSettled) continue;
    artifacts.push(
      await artifactOf(path, stats, {
        ...found,
        id: name,
        lastMs,
        time: match?.groups?.time,
        timeZone,
        takenFrom: takenFrom ?? 'unknown',
        runs,
      }),
    );
  }
  artifacts.sort((one, other) => one.startMs - other.startMs);
  return { artifacts, unfinished, unsettled, failures: [] };
}

interface FoundBackup {
  sizeBytes: number;
  /** When the content last changed, ms since the epoch. */
  lastMs: number;
  /** When something last happened in it, ms since the epoch: a copy of a backup may keep the times of the files. */
  changedMs: number;
  isIncomplete?: boolean;
  method?: BackupMethod;
  lsn?: Artifact['lsn'];
  wal?: Artifact['wal'];
}

async function artifactOf(
  path: string,
  stats: Stats,
  found: FoundBackup &
    Pick<Artifact, 'id' | 'timeZone' | 'takenFrom'> & { time?: string; runs: readonly RunRecord[] },
): Promise<Artifact> {
  const { id, lastMs, sizeBytes, lsn, wal, timeZone } = found;
  // A copy is younger than its content, and a name may contain any time: the earliest of all times is the least wrong.
  const times = [stats.birthtimeMs, stats.mtimeMs, timeOfName(found.time), startOfRun(found.runs, lastMs)];
  const startMs = Math.min(...times.filter((ms): ms is number => ms !== undefined && ms > 0));
  const method = found.method ?? (await methodOf(path));
  return {
    id,
    startMs,
    endMs: Math.max(lastMs, startMs),
    ...(stats.isFile() && { placedMs: stats.ctimeMs }),
    sizeBytes,
    fingerprint: `${stats.ino}:${sizeBytes}:${Math.trunc(lastMs)}`,
    method,
    verify: { path },
    lsn,
    wal,
    timeZone,
    // The label of a base backup states it.
    ...(method !== 'postgres_base' && { takenFrom: found.takenFrom }),
  };
}

/**
 * The time in the digits of a name, ms since the epoch: `20260102T030405Z`, `2026-01-02_03-04-05`, `20260102`, or seconds since
 * the epoch. The time is always read as UTC.
 */
export function timeOfName(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const digits = text.replace(/\D/g, '');
  if (digits.length === 10 && /^\d+$/.test(text)) return Number(digits) * 1000;
  if (![8, 10, 12, 14].includes(digits.length)) return undefined;
  const [year, month, day, hour, minute, second] = [0, 4, 6, 8, 10, 12].map((at, index) =>
    Number(digits.slice(at, at + (index === 0 ? 4 : 2)) || 0),
  ) as [number, number, number, number, number, number];
  const ms = Date.UTC(year, month - 1, day, hour, minute, second);
  return new Date(ms).getUTCMonth() === month - 1 && year >= 2000 ? ms : undefined;
}

/** The method that the first bytes of a dump show. A compressed SQL dump shows nothing until it is decompressed. */
async function methodOf(path: string): Promise<BackupMethod> {
  const head = await headOf(path, 8192).catch(() => undefined);
  if (!head) return 'other';
  if (head.subarray(0, 5).equals(pgDumpMagic)) return 'postgres_dump';
  const text = (compressionOf(head) === 'gzip' ? await gunzipHead(head) : head).toString('latin1');
  if (/^--\n-- PostgreSQL database/.test(text)) return 'postgres_dump';
  return /-- (?:MySQL|MariaDB) dump/.test(text.slice(0, 500)) ? 'mysql_dump' : 'other';
}

async function gunzipHead(head: Buffer): Promise<Buffer> {
  const { gunzipSync, constants } = await import('node:zlib');
  try {
    return gunzipSync(head, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: 256 * 1024 });
  } catch {
    return head;
  }
}

async function readDirectoryBackup(path: string): Promise<FoundBackup> {
  const { names, ...times } = await measure(path);
  const checkpoints = names.find((name) => checkpointFiles.includes(name));
  if (checkpoints) {
    const text = await readFile(join(path, checkpoints), 'utf8');
    return {
      ...times,
      method: 'mysql_physical',
      ...parseCheckpoints(text),
    };
  }
  if (names.includes('backup_manifest')) {
    const { walRanges } = await readBackupManifest(path);
    return { ...times, method: 'postgres_base', wal: walRanges };
  }
  // PostgreSQL writes the manifest last, and the physical tools write their checkpoints last.
  const isIncomplete = names.some(
    (name) => name === 'backup_label' || name === 'PG_VERSION' || name.startsWith('ibdata'),
  );
  return { ...times, isIncomplete };
}

/**
 * Size and times of everything below a directory, and the names in the directory itself. A change of rights, of the owner or of
 * the number of links counts as none.
 */
export async function measure(
  path: string,
): Promise<{ sizeBytes: number; lastMs: number; changedMs: number; names: string[] }> {
  const entries = await readdir(path, { withFileTypes: true, recursive: true });
  let sizeBytes = 0;
  let lastMs = 0;
  let changedMs = 0;
  for (const entry of entries) {
    if (!entry.isFile() && !entry.isDirectory()) continue;
    const stats = await statOf(join(entry.parentPath, entry.name));
    if (!stats) continue;
    changedMs = Math.max(changedMs, stats.mtimeMs, stats.birthtimeMs);
    if (!entry.isFile()) continue;
    sizeBytes += stats.size;
    lastMs = Math.max(lastMs, stats.mtimeMs);
  }
  return {
    sizeBytes,
    lastMs,
    changedMs,
    names: entries.filter(({ parentPath }) => parentPath === path).map(({ name }) => name),
  };
}

/** Parses `xtrabackup_checkpoints`: the range of InnoDB's log that the backup covers. */
export function parseCheckpoints(text: string): {
  lsn?: Artifact['lsn'];
  type?: string;
  isPrepared: boolean;
} {
  const field = (name: string) => new RegExp(`^\\s*${name}\\s*=\\s*(\\S+)`, 'm').exec(text)?.[1];
  const [from, to, type] = [field('from_lsn'), field('to_lsn'), field('backup_type')];
  return {
    lsn: from !== undefined && to !== undefined ? { from, to } : undefined,
    type,
    // No further incremental backup can be applied to a full backup that was prepared.
    isPrepared: type === 'full-prepared' || type === 'log-applied',
  };
}

const digest = async (path: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

/**
 * Compares live configuration files with their newest copies, by content. Copies are in `directory` itself, under the files' own
 * names, or in one directory below it for each copy; then the newest copy is used. Throws `evidence_unreadable` when a live file
 * or the directory cannot be read; a directory that does not exist has no copy.
 */
export async function readDrift(files: readonly string[], directory: string): Promise<Evidence> {
  const copies = await newestCopy(directory);
  const drift: string[] = [];
  let sizeBytes = 0;
  let endMs = 0;
  for (const file of files) {
    const live = await digest(file).catch((thrown: unknown) => {
      throw unreadable(`${file} cannot be read: ${errorText(thrown)}`, thrown);
    });
    const copy = copies && join(copies, basename(file));
    const stats = copy === undefined ? undefined : await unlessMissing(copy, stat(copy));
    const isEqual = stats !== undefined && (await unlessMissing(copy!, digest(copy!))) === live;
    if (!isEqual) drift.push(file);
    sizeBytes += stats?.size ?? 0;
    endMs = Math.max(endMs, stats?.mtimeMs ?? 0);
  }
  const artifact: Artifact | undefined =
    endMs === 0
      ? undefined
      : {
          id: basename(copies!),
          startMs: endMs,
          endMs,
          sizeBytes,
          fingerprint: String(endMs),
          method: 'configuration',
          verified: 'ok',
        };
  return { artifacts: artifact ? [artifact] : [], unfinished: [], failures: [], drift };
}

async function newestCopy(directory: string): Promise<string | undefined> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((thrown: unknown) => {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw unreadable(`${directory} cannot be read: ${errorText(thrown)}`, thrown);
  });
  if (!entries) return undefined;
  if (entries.some((entry) => entry.isFile() && !entry.name.startsWith('.'))) return directory;
  // Names with a date are sorted by it, because the time of a directory changes when something in it does.
  const below = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
  const newest = below.sort().at(-1);
  return newest === undefined ? undefined : join(directory, newest);
}
