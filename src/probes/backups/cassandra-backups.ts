import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { errorText, systemCode } from '../../core/errors.ts';
import { ProbeError } from '../probe.ts';
import {
  type Artifact,
  type Evidence,
  type FlushWindow,
  noEvidence,
  unlessMissing,
  unreadable,
} from './evidence.ts';
import { faultsOfRuns, type RunRecord } from './journal.ts';

/** One table's part of a snapshot of the wide-column store, on the disk of a node. */
export interface SnapshotPart {
  /** `TABLE-ID` of the directory. */
  table: string;
  directory: string;
  /** What `manifest.json` says; none when it is missing. */
  manifest?: SnapshotManifest;
}

interface SnapshotManifest {
  /** Names of data files. */
  files: readonly string[];
  /** When the snapshot was taken, ms since the epoch; from Cassandra 4.1 on. */
  createdMs?: number;
}

/** A snapshot of a keyspace on this node: one directory for each table, all of the same name. */
export interface CassandraSnapshot {
  name: string;
  parts: readonly SnapshotPart[];
  /** Tables of which the snapshot has nothing: those of the node, and of other snapshots. */
  missingTables: readonly string[];
  /** When it was taken by the account of each manifest, ms since the epoch. */
  createdMs?: number;
  files: readonly string[];
  startMs: number;
  endMs: number;
  /**
   * When a file that a verification reads last changed, ms since the epoch; `endMs` for a snapshot that was not
   * changed.
   */
  changedMs: number;
  sizeBytes: number;
}

/**
 * Files of an SSTable that a verification reads. A server never writes to them again, so that their times are steady.
 */
const verifiedFile = /-(?:Data\.db|Digest\.crc32)$/;

async function listOf(directory: string): Promise<string[]> {
  return readdir(directory).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR') return [];
    throw thrown;
  });
}

/** The names in a manifest. Cassandra lists the data component of each SSTable; an empty table has none. */
function readManifest(text: string): SnapshotManifest {
  const { files, created_at } = JSON.parse(text) as { files?: unknown; created_at?: unknown };
  if (!Array.isArray(files) || !files.every((name) => typeof name === 'string' && !name.includes('/'))) {
    throw new Error('manifest.json has no list of files');
  }
  const createdMs = typeof created_at === 'string' ? Date.parse(created_at) : Number.NaN;
  return { files, ...(!Number.isNaN(createdMs) && { createdMs }) };
}

async function partOf(table: string, directory: string): Promise<SnapshotPart> {
  const path = join(directory, 'manifest.json');
  const text = await unlessMissing(path, readFile(path, 'utf8'));
  return { table, directory, manifest: text === undefined ? undefined : readManifest(text) };
}

/**
 * Snapshots of a keyspace, oldest first. `keyspaceDirectory` is `DATA/KEYSPACE`, in which each table has a
 * directory `TABLE-ID/snapshots/NAME`. Throws when the directory cannot be read. Snapshots that the server takes by
 * itself when a table is dropped or truncated are left out.
 */
export async function readSnapshots(keyspaceDirectory: string): Promise<CassandraSnapshot[]> {
  const tables = await readdir(keyspaceDirectory);
  const byName = new Map<string, { table: string; directory: string }[]>();
  const live: string[] = [];
  for (const table of tables) {
    if (await isLive(join(keyspaceDirectory, table))) live.push(table);
    for (const name of await listOf(join(keyspaceDirectory, table, 'snapshots'))) {
      if (/^(?:dropped|truncated)-/.test(name)) continue;
      const directory = join(keyspaceDirectory, table, 'snapshots', name);
      byName.set(name, [...(byName.get(name) ?? []), { table, directory }]);
    }
  }
  const inSnapshots = [...byName.values()].flat().map(({ table }) => table);
  const expected = new Set([...live, ...inSnapshots]);
  const snapshots = await Promise.all([...byName].map(([name, found]) => snapshotOf(name, found, expected)));
  return snapshots.sort((one, other) => one.endMs - other.endMs);
}

/** Whether a table is there: of one that was dropped, snapshots are left. */
async function isLive(directory: string): Promise<boolean> {
  const names = await listOf(directory);
  if (names.some((name) => name.endsWith('-Data.db'))) return true;
  const snapshots = await listOf(join(directory, 'snapshots'));
  return names.includes('backups') && !snapshots.some((name) => name.startsWith('dropped-'));
}

/** When a table was created, by its id, which is a UUID of version 1; undefined for another id. */
function createdMsOf(table: string): number | undefined {
  const id = /-([0-9a-f]{32})$/.exec(table)?.[1];
  if (id === undefined || id[12] !== '1') return undefined;
  const ticks = BigInt(`0x${id.slice(13, 16)}${id.slice(8, 12)}${id.slice(0, 8)}`);
  return Number(ticks / 10_000n) - gregorianMs;
}

/** From the beginning of the Gregorian calendar, from which such UUIDs count, to that of 1970. */
const gregorianMs = 12_219_292_800_000;

async function snapshotOf(
  name: string,
  found: readonly { table: string; directory: string }[],
  expected: ReadonlySet<string>,
): Promise<CassandraSnapshot> {
  const parts = await Promise.all(found.map(({ table, directory }) => partOf(table, directory)));
  const files: string[] = [];
  let sizeBytes = 0;
  let startMs = Number.POSITIVE_INFINITY;
  let endMs = 0;
  let changedMs = 0;
  for (const { directory } of parts) {
    for (const file of await listOf(directory)) {
      const stats = await unlessMissing(join(directory, file), stat(join(directory, file)));
      if (!stats?.isFile()) continue;
      files.push(join(directory, file));
      sizeBytes += stats.size;
      // SSTables are hard links with times of their own; the files that the snapshot itself wrote have the time at
      // which it was taken.
      const isOfSnapshot = file === 'manifest.json' || file === 'schema.cql';
      if (isOfSnapshot) {
        startMs = Math.min(startMs, stats.mtimeMs);
        endMs = Math.max(endMs, stats.mtimeMs);
      }
      if (isOfSnapshot || verifiedFile.test(file)) changedMs = Math.max(changedMs, stats.mtimeMs);
    }
  }
  const covered = new Set(parts.map(({ table }) => table));
  const created = parts.map(({ manifest }) => manifest?.createdMs);
  const createdMs = created.every((ms) => ms !== undefined) ? Math.min(...created) : undefined;
  const isDue = (table: string) => (createdMsOf(table) ?? 0) <= (createdMs ?? endMs);
  return {
    name,
    parts,
    createdMs,
    missingTables: [...expected].filter((table) => !covered.has(table) && isDue(table)),
    files,
    startMs: Number.isFinite(startMs) ? startMs : endMs,
    endMs,
    changedMs,
    sizeBytes,
  };
}

/** Whether the data file of an SSTable matches the digest beside it; one without a digest is passed over. */
export async function digestFault(
  path: string,
  read: (path: string) => AsyncIterable<Buffer>,
): Promise<string | undefined> {
  const digestPath = path.replace(/-Data\.db$/, '-Digest.crc32');
  if (digestPath === path) return undefined;
  const expected = await unlessMissing(digestPath, readFile(digestPath, 'utf8'));
  if (expected === undefined) return undefined;
  let crc = 0;
  for await (const chunk of read(path)) crc = crc32(chunk, crc);
  return String(crc) === expected.trim() ? undefined : `${basename(path)} does not match its digest`;
}

/** What is missing or damaged in a snapshot; `withDigests` reads every data file that has a digest beside it. */
export async function snapshotFault(
  { parts, missingTables }: CassandraSnapshot,
  withDigests: boolean,
  read: (path: string) => AsyncIterable<Buffer>,
): Promise<string | undefined> {
  if (missingTables.length > 0) return `tables without a snapshot: ${missingTables.slice(0, 5).join(', ')}`;
  for (const { table, directory, manifest } of parts) {
    if (manifest === undefined) return `${table}: manifest.json is missing`;
    const there = new Set(await listOf(directory));
    for (const name of manifest.files) {
      if (!there.has(name)) return `${table}: ${name} of the manifest is missing`;
      const fault = withDigests && (await digestFault(join(directory, name), read));
      if (fault) return `${table}: ${fault}`;
    }
  }
  return undefined;
}

/** Snapshots of a keyspace on this node as evidence: one that misses a table or a file of a manifest is unfinished. */
export async function readSnapshotEvidence({
  dataDirectory,
  keyspace,
}: {
  dataDirectory: string;
  keyspace: string;
}): Promise<Evidence> {
  const directory = join(dataDirectory, keyspace);
  const snapshots = await readSnapshots(directory).catch((thrown: unknown) => {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    if (thrown instanceof ProbeError) throw thrown;
    throw unreadable(`${directory} cannot be read: ${errorText(thrown)}`, thrown);
  });
  if (!snapshots) return noEvidence(directory);
  const artifacts: Artifact[] = [];
  const unfinished: { id: string; sinceMs: number }[] = [];
  for (const snapshot of snapshots) {
    const { name, endMs, changedMs, sizeBytes, createdMs } = snapshot;
    if ((await snapshotFault(snapshot, false, () => emptyStream())) !== undefined) {
      unfinished.push({ id: name, sinceMs: endMs });
      continue;
    }
    artifacts.push({
      id: name,
      startMs: createdMs ?? snapshot.startMs,
      endMs,
      sizeBytes,
      files: snapshot.files.length,
      content:
        createdMs === undefined
          ? { unknown: 'its manifests do not say when it was taken; Cassandra 4.1 and newer do' }
          : { startMs: createdMs },
      fingerprint: `${snapshot.files.length}:${sizeBytes}:${Math.trunc(changedMs)}`,
      method: 'snapshot',
      verify: { path: directory, snapshot: name },
    });
  }
  return { artifacts, unfinished, failures: [], snapshots: artifacts.map(({ id }) => id) };
}

async function* emptyStream(): AsyncGenerator<Buffer> {}

/**
 * Incremental backups of the wide-column store. With `incremental_backups: true` a node links each SSTable that it
 * flushes into the directory `backups` of its table. What is still in memory is in none of them, and nothing in the
 * directory says up to when it is complete: a run of `nodetool flush` does, which `svc-agent backup run` records. All
 * that was written before its start is in the files of that flush, and of those before it.
 */

export interface FlushedFile {
  path: string;
  sizeBytes: number;
  writtenMs: number;
}

interface Source {
  dataDirectory: string;
  keyspace: string;
}

async function filesIn(keyspaceDirectory: string): Promise<FlushedFile[] | undefined> {
  const tables = await unlessMissing(keyspaceDirectory, readdir(keyspaceDirectory, { withFileTypes: true }));
  if (tables === undefined) return undefined;
  const files: FlushedFile[] = [];
  for (const table of tables) {
    if (!table.isDirectory()) continue;
    const directory = join(keyspaceDirectory, table.name, 'backups');
    for (const name of (await unlessMissing(directory, readdir(directory))) ?? []) {
      const path = join(directory, name);
      const stats = await unlessMissing(path, stat(path));
      if (stats?.isFile()) files.push({ path, sizeBytes: stats.size, writtenMs: stats.mtimeMs });
    }
  }
  return files;
}

const within = (files: readonly FlushedFile[], { fromMs, toMs }: FlushWindow) =>
  files.filter(({ writtenMs }) => writtenMs > fromMs && writtenMs <= toMs);

export async function filesOfFlush(keyspaceDirectory: string, window: FlushWindow): Promise<FlushedFile[]> {
  return within((await filesIn(keyspaceDirectory)) ?? [], window);
}

/** What is missing or damaged: the components that `TOC.txt` lists and, `withDigests`, the content of data files. */
export async function flushFault(
  files: readonly FlushedFile[],
  withDigests: boolean,
  read: (path: string) => AsyncIterable<Buffer>,
): Promise<string | undefined> {
  const there = new Set(files.map(({ path }) => path));
  for (const path of there) {
    const table = basename(dirname(dirname(path)));
    const [, sstable, component] = /^(.*-)([A-Za-z_]+\.[a-z0-9]+)$/.exec(basename(path)) ?? [];
    if (sstable === undefined) continue;
    const toc = join(dirname(path), `${sstable}TOC.txt`);
    if (!there.has(toc)) return `${table}: ${sstable}TOC.txt is missing`;
    if (component === 'TOC.txt') {
      const listed = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
      const missing = listed.find((each) => !there.has(join(dirname(path), sstable + each)));
      if (missing) return `${table}: ${sstable}${missing} is missing`;
    }
    if (component !== 'Data.db' || !withDigests) continue;
    const fault = await digestFault(path, read);
    if (fault) return `${table}: ${fault}`;
  }
  return undefined;
}

/**
 * Each recorded run of `nodetool flush` as a backup that builds upon the one before it, of the last `keepMs`. `isOff`:
 * the server says that it writes no incremental backups, so that the flushes prove nothing.
 */
export async function readIncrementals(
  { dataDirectory, keyspace }: Source,
  runs: readonly RunRecord[],
  { nowMs, keepMs = Number.POSITIVE_INFINITY, isOff }: { nowMs: number; keepMs?: number; isOff: boolean },
): Promise<Evidence> {
  const directory = join(dataDirectory, keyspace);
  const files = await filesIn(directory);
  if (files === undefined) return noEvidence(directory);
  const flushes = runs.filter((run): run is RunRecord & { endMs: number } => run.status === 0);
  const artifacts = flushes.map(({ startMs, endMs }, index): Artifact => {
    const sinceMs = flushes[index - 1]?.startMs;
    const window = { fromMs: sinceMs ?? 0, toMs: endMs };
    const own = within(files, window);
    const sizeBytes = own.reduce((total, file) => total + file.sizeBytes, 0);
    const newestMs = own.reduce((newest, { writtenMs }) => Math.max(newest, writtenMs), 0);
    return {
      id: `flush ${new Date(startMs).toISOString()}`,
      ...{ startMs, endMs, sinceMs, files: own.length, method: 'flush', content: { startMs } },
      // An hour without a write has no files, which is complete all the same.
      sizeBytes: own.length === 0 ? Number.MAX_SAFE_INTEGER : sizeBytes,
      fingerprint: `${own.length}:${sizeBytes}:${Math.trunc(newestMs)}`,
      verify: { path: directory, flush: window },
      ...(isOff && { verified: 'unknown' }),
    };
  });
  return {
    artifacts: artifacts.filter(({ startMs }) => nowMs - startMs <= keepMs),
    ...faultsOfRuns(runs, nowMs),
    ...(isOff && { gap: 'the node writes no incremental backups; set incremental_backups: true' }),
  };
}
