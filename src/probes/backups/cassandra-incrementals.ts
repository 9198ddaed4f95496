import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type ContentReading, contentFault, missingComponent } from './cassandra-backups.ts';
import { type Artifact, type Evidence, noEvidence, type RunRecord, unlessMissing } from './evidence.ts';
import { faultsOfRuns } from './journal.ts';

/**
 * Incremental backups of the wide-column store. With `incremental_backups: true` a node links each SSTable that it flushes into
 * the directory `backups` of its table. Data that is still in memory is in none of them, and nothing in the directory says up to
 * which time it is complete. A run of `nodetool flush` does: `svc-agent backup run` records it together with the SSTables that it
 * found afterwards. Everything that was written before the start of the run is in the files of that flush and of the flushes
 * before it.
 */

interface FlushedFile {
  path: string;
  sizeBytes: number;
  writtenMs: number;
}

interface KeyspacePlace {
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

/** The prefix of the names of one SSTable's files. */
const stemOf = (name: string) => /^(\w+-\w+-[a-z]+-).+\.\w+$/.exec(name)?.[1];

/** The prefix of the paths of one SSTable's files, relative to the keyspace: `TABLE-ID/backups/oa-1-big-`. */
function sstableOf(keyspaceDirectory: string, path: string): string | undefined {
  const stem = stemOf(basename(path));
  return stem && join(dirname(path), stem).slice(keyspaceDirectory.length + 1);
}

/** The files of these SSTables. */
export async function filesOfFlush(
  keyspaceDirectory: string,
  sstables: readonly string[],
): Promise<FlushedFile[]> {
  const wanted = new Set(sstables);
  const files = (await filesIn(keyspaceDirectory)) ?? [];
  return files.filter(({ path }) => wanted.has(sstableOf(keyspaceDirectory, path) ?? ''));
}

/** SSTables that no earlier run has recorded, for the record of this run. */
export async function newSstables(
  { dataDirectory, keyspace }: KeyspacePlace,
  runs: readonly RunRecord[],
): Promise<string[]> {
  const directory = join(dataDirectory, keyspace);
  const known = new Set(runs.flatMap(({ files = [] }) => files));
  // SSTables that are older than a recorded run were recorded, in a journal that has been shortened since.
  const sinceMs = recordedRuns(runs).at(-1)?.startMs ?? 0;
  const found = ((await filesIn(directory)) ?? [])
    .filter(({ writtenMs }) => writtenMs >= sinceMs)
    .flatMap(({ path }) => sstableOf(directory, path) ?? []);
  return [...new Set(found)].filter((sstable) => !known.has(sstable));
}

interface RecordedRun extends RunRecord {
  endMs: number;
  files: readonly string[];
}

const recordedRuns = (runs: readonly RunRecord[]) =>
  runs.filter((run): run is RecordedRun => run.status === 0 && run.files !== undefined);

/**
 * What is missing or damaged in a flush: the components that `TOC.txt` lists and, with a `reading`, the content of its files.
 */
export async function flushFault(
  files: readonly FlushedFile[],
  reading?: ContentReading,
): Promise<string | undefined> {
  const byDirectory = new Map<string, Set<string>>();
  for (const { path } of files) {
    const names = byDirectory.get(dirname(path)) ?? new Set();
    byDirectory.set(dirname(path), names.add(basename(path)));
  }
  for (const [directory, there] of byDirectory) {
    const table = basename(dirname(directory));
    const sstables = new Set([...there].flatMap((name) => stemOf(name) ?? []));
    for (const sstable of sstables) {
      const missing = await missingComponent(directory, sstable, there);
      if (missing) return `${table}: ${missing} is missing`;
      const fault = reading && (await contentFault(join(directory, `${sstable}Data.db`), table, reading));
      if (fault) return `${table}: ${fault}`;
    }
  }
  return undefined;
}

/** Whether the node writes incremental backups, according to the polls of the store. */
interface Incrementals {
  /** Whether the node wrote incremental backups at the last poll; undefined if no poll shows it. */
  isOn?: boolean;
  /** A period within which the node did not write incremental backups at some moment, ms since the epoch. */
  off?: { afterMs: number; untilMs: number };
}

interface IncrementalsContext {
  nowMs: number;
  /** Flushes that began earlier than this long ago are left out. */
  keepMs?: number;
  node?: Incrementals;
}

/** Each recorded run of `nodetool flush` within the last `keepMs`, as a backup that builds upon the run before it. */
export async function readIncrementals(
  { dataDirectory, keyspace }: KeyspacePlace,
  runs: readonly RunRecord[],
  { nowMs, keepMs = Number.POSITIVE_INFINITY, node = {} }: IncrementalsContext,
): Promise<Evidence> {
  const directory = join(dataDirectory, keyspace);
  const all = await filesIn(directory);
  if (all === undefined) return noEvidence(directory);
  const bySstable = new Map<string, FlushedFile[]>();
  for (const file of all) {
    const sstable = sstableOf(directory, file.path);
    if (sstable !== undefined) bySstable.set(sstable, [...(bySstable.get(sstable) ?? []), file]);
  }
  const flushes = recordedRuns(runs);
  const artifacts = flushes.map(({ startMs, endMs, files }, index): Artifact => {
    const sinceMs = flushes[index - 1]?.startMs;
    const own = files.flatMap((sstable) => bySstable.get(sstable) ?? []);
    const sizeBytes = own.reduce((total, file) => total + file.sizeBytes, 0);
    const newestMs = own.reduce((newest, { writtenMs }) => Math.max(newest, writtenMs), 0);
    const why = whyIncomplete({ sinceMs, endMs, isEmpty: files.length === 0 }, node);
    return {
      id: `flush ${new Date(startMs).toISOString()}`,
      ...{ startMs, endMs, sinceMs, method: 'flush' },
      content: why === undefined ? { startMs } : { unknown: why },
      files: files.filter((sstable) => bySstable.has(sstable)).length,
      recordedFiles: files.length,
      // An hour without a write has no files.
      sizeBytes: own.length === 0 ? Number.MAX_SAFE_INTEGER : sizeBytes,
      fingerprint: `${own.length}:${sizeBytes}:${Math.trunc(newestMs)}`,
      verify: { path: directory, flush: files },
      ...(why !== undefined && { verified: 'unknown' }),
    };
  });
  return {
    artifacts: artifacts.filter(({ startMs }) => nowMs - startMs <= keepMs),
    ...faultsOfRuns(runs, nowMs),
    ...(node.isOn === false && {
      gap: 'the node writes no incremental backups; set incremental_backups: true',
    }),
  };
}

/** Why the files of a flush may lack something that was written since the flush before it. */
function whyIncomplete(
  { sinceMs = 0, endMs, isEmpty }: { sinceMs?: number; endMs: number; isEmpty: boolean },
  { isOn, off }: Incrementals,
): string | undefined {
  if (off && endMs > off.afterMs && sinceMs <= off.untilMs)
    return 'the node wrote no incremental backups for a while; take a snapshot';
  if (!isEmpty || isOn) return undefined;
  return 'it has no files, and no poll of the store shows that the node writes incremental backups';
}
