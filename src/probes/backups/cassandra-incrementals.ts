import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { digestFault } from './cassandra-snapshots.ts';
import { type Artifact, type Evidence, type FlushWindow, noEvidence, unlessMissing } from './evidence.ts';
import { faultsOfRuns, type RunRecord } from './journal.ts';

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
      ...{ startMs, endMs, sinceMs, files: own.length, method: 'flush' },
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
