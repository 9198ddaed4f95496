import { constants } from 'node:fs';
import * as files from 'node:fs/promises';
import { errorText, systemCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { ArchiveFailureReason } from '../../core/reasons.ts';
import type { Finding, Probe } from '../probe.ts';
import { ProbeError } from '../probe-error.ts';
import type { Disk } from './disk.ts';
import { type NewestFile, newestFile, type WalkCut, type WalkDeps } from './newest-file.ts';
import { type ArchiveTarget, newestGauge, timeText } from './target.ts';

export interface DirectoryDeps {
  clock: Clock;
  /** Default: Node's own. */
  disk?: Disk;
}

/** With less room than this an archive counts as full. */
export const leastFreeBytes = 100 * 2 ** 20;

/** About a second of work on a local disk. */
const bounds = { maxEntries: 20_000, maxDepth: 8 };
/** A slow file system is walked no longer, so that the look ends with what it has. */
const walkMs = 10_000;
const cuts: Readonly<Record<WalkCut, string>> = {
  entries: `it has more than ${bounds.maxEntries} entries`,
  depth: `it is more than ${bounds.maxDepth} directories deep`,
  time: 'time ran out',
  unreadable: 'parts of it cannot be read',
};

/**
 * A file archive: there, writable where it is written to, with room, and the time of its newest file. Writing is
 * judged by the rights of the agent's user and by the mount; no file is written, because whoever reads the archive
 * would find it there. A file system that hangs costs one thread, not one with each look.
 */
export function createDirectoryProbe(
  directory: string,
  target: ArchiveTarget,
  { clock, disk = files }: DirectoryDeps,
): Probe {
  let hanging: Promise<Finding> | undefined;
  return {
    async check(signal) {
      if (hanging) {
        return { reason: 'too_slow', msg: `${directory}: an earlier look still waits for the file system` };
      }
      const look = lookAt(directory, target, { clock, disk, signal }).catch(failed(directory));
      hanging = look.finally(() => {
        hanging = undefined;
      });
      return Promise.race([hanging, aborted(signal, directory)]);
    },
  };
}

async function lookAt(directory: string, target: ArchiveTarget, deps: WalkDeps): Promise<Finding> {
  const { disk, clock } = deps;
  const stats = await disk.stat(directory).catch(refused('it cannot be looked at'));
  if (!stats.isDirectory()) throw new ProbeError('not_found', 'it is no directory');
  if (target.isWritten) await checkWritable(directory, disk);
  const freeBytes = await freeAt(directory, target, disk);
  const untilMs = clock.monotonicMs() + walkMs;
  const newest = await newestFile(directory, { ...bounds, untilMs }, deps).catch(
    refused('it cannot be read'),
  );
  const { files: seen, newestMs, cut } = newest;
  return {
    msg: `${target.isWritten ? 'writable' : 'readable'}, ${gibibytes(freeBytes)} free; ${newestText(newest)}`,
    gauges: newestGauge(target, cut === undefined ? newestMs : undefined),
    details: { freeBytes, files: seen, complete: cut === undefined },
  };
}

const reasons: Readonly<Record<string, ArchiveFailureReason>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  EACCES: 'denied',
  EPERM: 'denied',
};

/** Throws what a call to the file system threw as a fault, by its code. */
function refused(what: string): (error: unknown) => never {
  return (error) => {
    const code = systemCode(error) ?? '';
    const reason = Object.hasOwn(reasons, code) ? reasons[code]! : 'failed';
    throw new ProbeError(reason, `${what} (${errorText(error)})`, error);
  };
}

async function checkWritable(directory: string, disk: Disk): Promise<void> {
  try {
    await disk.access(directory, constants.W_OK | constants.X_OK);
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (!['EACCES', 'EPERM', 'EROFS'].includes(code)) refused('it cannot be looked at')(error);
    const why =
      code === 'EROFS'
        ? 'its file system is mounted read-only'
        : `the agent’s user (uid ${process.geteuid?.() ?? 'unknown'}) may not write to it`;
    throw new ProbeError('not_writable', why, error);
  }
}

/** Bytes that users without privileges may still write. Throws for an archive that is written to and is full. */
async function freeAt(directory: string, { isWritten }: ArchiveTarget, disk: Disk): Promise<number> {
  const {
    bavail,
    bsize,
    files: inodes,
    ffree,
  } = await disk.statfs(directory).catch(refused('its file system cannot be looked at'));
  const freeBytes = bavail * bsize;
  if (isWritten && freeBytes < leastFreeBytes) {
    const least = `less than ${leastFreeBytes / 2 ** 20} MiB`;
    throw new ProbeError('no_space', `${least} free: ${Math.floor(freeBytes / 2 ** 20)} MiB`);
  }
  // A file system without a fixed number of inodes says that it has none at all.
  if (isWritten && inodes > 0 && ffree === 0) throw new ProbeError('no_space', 'no inodes free');
  return freeBytes;
}

const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

function newestText({ files: seen, newestMs, cut }: NewestFile): string {
  const newest =
    newestMs === undefined ? 'no file yet' : `newest of ${seen} files is of ${timeText(newestMs)}`;
  if (cut === undefined) return newest;
  const bound = newestMs === undefined ? 'no file seen' : `newest file is at least of ${timeText(newestMs)}`;
  return `${bound}; not all was looked at, as ${cuts[cut]}`;
}

function aborted(signal: AbortSignal, directory: string): Promise<Finding> {
  const finding: Finding = {
    reason: 'too_slow',
    msg: `${directory}: the file system has not answered in time`,
  };
  return new Promise((resolve) => {
    if (signal.aborted) resolve(finding);
    else signal.addEventListener('abort', () => resolve(finding), { once: true });
  });
}

const failed =
  (directory: string) =>
  (error: unknown): Finding => ({
    reason: error instanceof ProbeError ? error.reason : 'failed',
    msg: `${directory}: ${errorText(error)}`,
  });
