import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import { type Artifact, type Evidence, unlessMissing, unreadable } from './evidence.ts';

const digest = async (path: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex');

/**
 * Compares live configuration files with their newest copies, by content. Copies lie in `directory` itself, under the
 * files' own names, or in one directory below it for each copy, the newest of which counts. Throws `evidence_unreadable` when
 * a live file or the directory cannot be read; a directory that does not exist has no copy.
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
  // Names with a date sort by it; times of directories change when something in them does.
  const below = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
    .map(({ name }) => name);
  const newest = below.sort().at(-1);
  return newest === undefined ? undefined : join(directory, newest);
}
