import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { errorText, systemCode } from '../../core/errors.ts';
import { ProbeError } from '../probe.ts';
import {
  type Artifact,
  type Evidence,
  noEvidence,
  type RunRecord,
  unlessMissing,
  unreadable,
} from './evidence.ts';
import { createChunkCheck, readChunks } from './formats/sstable-chunks.ts';
import { cutIndexOf } from './formats/sstable-index.ts';
import { type LogRange, readStatistics } from './formats/sstable-statistics.ts';

/** One table's part of a snapshot of the wide-column store, on the disk of a node. */
interface SnapshotPart {
  /** The name of the table's directory, `TABLE-ID`. */
  table: string;
  directory: string;
  /** The content of `manifest.json`; undefined if the file is missing. */
  manifest?: SnapshotManifest;
}

interface SnapshotManifest {
  /** Names of the data files. */
  files: readonly string[];
  /** When the snapshot was taken, ms since the epoch; known from Cassandra 4.1 on. */
  createdMs?: number;
}

/** A snapshot of a keyspace on this node: one directory for each table, all with the same name. */
interface CassandraSnapshot {
  name: string;
  parts: readonly SnapshotPart[];
  /** Tables that the snapshot does not contain: tables of the node, of the schema, and of other snapshots. */
  missingTables: readonly string[];
  /** Whether the node's own files show which tables the node has. */
  isOfNode: boolean;
  /** When the snapshot was taken according to its manifests, ms since the epoch. */
  createdMs?: number;
  files: readonly string[];
  startMs: number;
  endMs: number;
  /**
   * When a file that a verification reads last changed, ms since the epoch; equal to `endMs` for a snapshot that was not changed.
   */
  changedMs: number;
  /** When a part of a snapshot was last added, changed or removed, ms since the epoch. */
  touchedMs: number;
  sizeBytes: number;
}

/** Names of the files of an SSTable that a verification reads. A server never writes to them again, so their times are steady. */
const verifiedFile = /-(?:Data\.db|Digest\.crc32)$/;

async function listOf(directory: string): Promise<string[]> {
  return readdir(directory).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT' || thrown.code === 'ENOTDIR') return [];
    throw thrown;
  });
}

/** Parses a manifest. Cassandra lists the data component of each SSTable; an empty table has no data component. */
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
 * Snapshots of a keyspace, oldest first. `keyspaceDirectory` is `DATA/KEYSPACE`, in which each table has a directory
 * `TABLE-ID/snapshots/NAME`. `schema` lists the tables of the store as `TABLE-ID`. Throws when the directory cannot be read.
 * Snapshots that the server takes when a table is dropped or truncated are left out.
 */
export async function readSnapshots(
  keyspaceDirectory: string,
  schema: readonly string[] = [],
): Promise<CassandraSnapshot[]> {
  const tables = await readdir(keyspaceDirectory);
  const byName = new Map<string, { table: string; directory: string }[]>();
  const live: string[] = [];
  let isOfNode = false;
  let touchedMs = 0;
  for (const table of tables) {
    const names = await listOf(join(keyspaceDirectory, table));
    isOfNode ||= names.some(isData);
    if (await isLive(join(keyspaceDirectory, table), names)) live.push(table);
    touchedMs = Math.max(touchedMs, await touchedIn(join(keyspaceDirectory, table)));
    for (const name of await listOf(join(keyspaceDirectory, table, 'snapshots'))) {
      if (/^(?:dropped|truncated)-/.test(name)) continue;
      const directory = join(keyspaceDirectory, table, 'snapshots', name);
      byName.set(name, [...(byName.get(name) ?? []), { table, directory }]);
    }
  }
  const inSnapshots = [...byName.values()].flat().map(({ table }) => table);
  const expected = new Set([...live, ...schema, ...inSnapshots]);
  const snapshots = await Promise.all(
    [...byName].map(([name, found]) => snapshotOf(name, found, { expected, isOfNode, touchedMs })),
  );
  return snapshots.sort((one, other) => one.endMs - other.endMs);
}

/** When a snapshot of a table was last added or removed. The removal of the last snapshot removes the directory, too. */
async function touchedIn(table: string): Promise<number> {
  const snapshots = join(table, 'snapshots');
  const stats =
    (await unlessMissing(snapshots, stat(snapshots))) ?? (await unlessMissing(table, stat(table)));
  return stats?.mtimeMs ?? 0;
}

const isData = (name: string) => name.endsWith('-Data.db');

/** Whether a table exists: of a dropped table, only snapshots are left. */
async function isLive(directory: string, names: readonly string[]): Promise<boolean> {
  if (names.some(isData)) return true;
  const snapshots = await listOf(join(directory, 'snapshots'));
  return names.includes('backups') && !snapshots.some((name) => name.startsWith('dropped-'));
}

/** When a table was created, by the id in the name of its directory, which is a UUID of version 1; undefined for another id. */
export function createdMsOf(table: string): number | undefined {
  const id = /-([0-9a-f]{32})$/.exec(table)?.[1];
  if (id === undefined || id[12] !== '1') return undefined;
  const ticks = BigInt(`0x${id.slice(13, 16)}${id.slice(8, 12)}${id.slice(0, 8)}`);
  return Number(ticks / 10_000n) - gregorianMs;
}

/** The time from the beginning of the Gregorian calendar, where the time of such UUIDs begins, to the beginning of 1970. */
const gregorianMs = 12_219_292_800_000;

async function snapshotOf(
  name: string,
  found: readonly { table: string; directory: string }[],
  { expected, isOfNode, touchedMs }: { expected: ReadonlySet<string>; isOfNode: boolean; touchedMs: number },
): Promise<CassandraSnapshot> {
  const parts = await Promise.all(found.map(({ table, directory }) => partOf(table, directory)));
  const files: string[] = [];
  let sizeBytes = 0;
  let startMs = Number.POSITIVE_INFINITY;
  let endMs = 0;
  let changedMs = 0;
  for (const { directory } of parts) {
    touchedMs = Math.max(touchedMs, (await unlessMissing(directory, stat(directory)))?.mtimeMs ?? 0);
    for (const file of await listOf(directory)) {
      const stats = await unlessMissing(join(directory, file), stat(join(directory, file)));
      if (!stats?.isFile()) continue;
      files.push(join(directory, file));
      sizeBytes += stats.size;
      // SSTables are hard links with their own times; the files that the snapshot itself wrote have the time at which it was
      // taken.
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
    isOfNode,
    files,
    startMs: Number.isFinite(startMs) ? startMs : endMs,
    endMs,
    changedMs,
    touchedMs: Math.max(touchedMs, endMs),
    sizeBytes,
  };
}

/** How the content of SSTables is read. */
export interface ContentReading {
  read(path: string): AsyncIterable<Buffer>;
  /** Called with the part of the commit log in which the rows of an SSTable are, and the directory of its table. */
  onRange(table: string, range: LogRange): void;
}

/** The fault in the content of an SSTable of a table, given by its data file. Files that are not there are skipped. */
export async function contentFault(
  path: string,
  table: string,
  { read, onRange }: ContentReading,
): Promise<string | undefined> {
  const pathWith = (suffix: string) => path.replace(/-Data\.db$/, suffix);
  const nameWith = (suffix: string) => basename(pathWith(suffix));
  const bytesOf = (suffix: string) => unlessMissing(pathWith(suffix), readFile(pathWith(suffix)));
  const statistics = await bytesOf('-Statistics.db');
  const { fault, range, partitions } = statistics
    ? readStatistics(nameWith('-Statistics.db'), statistics)
    : {};
  if (range !== undefined) onRange(table, range);
  if (fault !== undefined) return fault;
  const cut = await cutIndexOf(pathWith, { partitions, read });
  if (cut !== undefined) return `${nameWith(cut)} is cut off or damaged`;
  const compression = await bytesOf('-CompressionInfo.db');
  const chunks = compression && readChunks(compression);
  const isUndescribed = `${nameWith('-CompressionInfo.db')} does not describe ${basename(path)}`;
  if (compression && !chunks) return isUndescribed;
  const digest = (await bytesOf('-Digest.crc32'))?.toString('utf8').trim();
  if (digest === undefined && chunks === undefined) return undefined;
  const check = chunks && createChunkCheck(chunks, (await stat(path)).size);
  let crc = 0;
  for await (const piece of read(path)) {
    crc = crc32(piece, crc);
    check?.take(piece);
  }
  if (digest !== undefined && digest !== String(crc)) return `${basename(path)} does not match its digest`;
  return check?.isRight() === false ? isUndescribed : undefined;
}

/** A file of an SSTable that is missing. Its table of contents lists the files that the server needs. */
export async function missingComponent(
  directory: string,
  sstable: string,
  there: ReadonlySet<string>,
): Promise<string | undefined> {
  const contents = `${sstable}TOC.txt`;
  if (!there.has(contents)) return contents;
  const listed = (await readFile(join(directory, contents), 'utf8'))
    .split('\n')
    .filter((line) => line !== '');
  return listed.map((component) => sstable + component).find((name) => !there.has(name));
}

/** What is missing or damaged in a snapshot; the content of its files counts only with a `reading`. */
export async function snapshotFault(
  { parts, missingTables }: CassandraSnapshot,
  reading?: ContentReading,
): Promise<string | undefined> {
  if (missingTables.length > 0) return `tables without a snapshot: ${missingTables.slice(0, 5).join(', ')}`;
  for (const { table, directory, manifest } of parts) {
    if (manifest === undefined) return `${table}: manifest.json is missing`;
    const there = new Set(await listOf(directory));
    for (const name of manifest.files) {
      if (!there.has(name)) return `${table}: ${name} of the manifest is missing`;
      const missing = await missingComponent(directory, name.replace(/[A-Za-z_]+\.db$/, ''), there);
      if (missing) return `${table}: ${missing} is missing`;
      const fault = reading && (await contentFault(join(directory, name), table, reading));
      if (fault) return `${table}: ${fault}`;
    }
  }
  return undefined;
}

/** Further knowledge about a snapshot, beside its files. */
export interface SnapshotContext {
  /** Tables that the store reports, as `TABLE-ID`; undefined if the store was never asked. */
  schema?: readonly string[];
  /** Runs of the job that takes the snapshots. */
  runs?: readonly RunRecord[];
  nowMs: number;
}

/**
 * Snapshots of a keyspace on this node as evidence. A snapshot without all tables, or without a file of a manifest, is
 * unfinished once nothing has changed for `settleMs`: it may be under way, or be cleared. The schema, the node's own files, or
 * the record of the run that took it show whether it has every table.
 */
export async function readSnapshotEvidence(
  { dataDirectory, keyspace, settleMs = 0 }: { dataDirectory: string; keyspace: string; settleMs?: number },
  { schema, runs = [], nowMs }: SnapshotContext,
): Promise<Evidence> {
  const directory = join(dataDirectory, keyspace);
  const snapshots = await readSnapshots(directory, schema).catch((thrown: unknown) => {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    if (thrown instanceof ProbeError) throw thrown;
    throw unreadable(`${directory} cannot be read: ${errorText(thrown)}`, thrown);
  });
  if (!snapshots) return noEvidence(directory);
  const recorded = runs.flatMap(({ files = [] }) => files);
  const artifacts: Artifact[] = [];
  const unfinished: { id: string; sinceMs: number }[] = [];
  for (const snapshot of snapshots) {
    const { name, parts, endMs, changedMs, sizeBytes, isOfNode } = snapshot;
    const own = recorded.filter((path) => path.endsWith(`/snapshots/${name}`));
    const there = new Set(parts.map(({ table }) => partPath(table, name)));
    const isWhole = own.every((path) => there.has(path));
    if (!isWhole || (await snapshotFault(snapshot)) !== undefined) {
      if (nowMs - snapshot.touchedMs >= settleMs) unfinished.push({ id: name, sinceMs: endMs });
      continue;
    }
    artifacts.push({
      id: name,
      startMs: snapshot.createdMs ?? snapshot.startMs,
      endMs,
      sizeBytes,
      files: snapshot.files.length,
      content: contentOf(snapshot, schema !== undefined || isOfNode || own.length > 0),
      fingerprint: `${snapshot.files.length}:${sizeBytes}:${Math.trunc(changedMs)}`,
      method: 'snapshot',
      verify: { path: directory, snapshot: name },
    });
  }
  return { artifacts, unfinished, failures: [], snapshots: artifacts.map(({ id }) => id) };
}

/** The path of a part, relative to the keyspace. */
const partPath = (table: string, name: string) => `${table}/snapshots/${name}`;

function contentOf({ createdMs }: CassandraSnapshot, areTablesKnown: boolean): Artifact['content'] {
  if (createdMs === undefined)
    return { unknown: 'its manifests do not say when it was taken; Cassandra 4.1 and newer do' };
  if (areTablesKnown) return { startMs: createdMs };
  return {
    unknown:
      'nothing shows which tables it must have; let the agent reach the store, or run the job by svc-agent backup run',
  };
}

/** The parts of all snapshots, relative to the keyspace, for the record of a run. */
export async function partsOfSnapshots(keyspaceDirectory: string): Promise<string[]> {
  const snapshots = await readSnapshots(keyspaceDirectory);
  return snapshots.flatMap(({ name, parts }) => parts.map(({ table }) => partPath(table, name)));
}
