import { createHash } from 'node:crypto';
import type { Stats, StatsFs } from 'node:fs';
import * as files from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import type { Clock } from '../../core/ports.ts';
import type { ArchiveFailureReason } from '../../core/reasons.ts';
import { untilAborted } from '../connection.ts';
import { type Finding, type Probe, ProbeError, timeText } from '../probe.ts';
import { type ArchiveTarget, later, newestGauge } from './archives.ts';
import {
  createDirectoryWalk,
  type DirectoryWalk,
  maxDepth,
  type WalkDisk,
  type WalkGap,
} from './directory-walk.ts';

// Checks an archive in a directory: whether it exists, can be written to and has room, and how old its newest file is.

/** The calls of `node:fs/promises` that the probe makes. */
export interface ArchiveDisk extends WalkDisk {
  stat(path: string): Promise<Stats>;
  statfs(path: string): Promise<StatsFs>;
  readFile(path: string, encoding: 'utf8'): Promise<string>;
  writeFile(path: string, text: string, options: { flag: string; mode: number }): Promise<void>;
  unlink(path: string): Promise<void>;
  open(path: string): Promise<OpenFile>;
}

/** A file that is read. */
interface OpenFile {
  read(into: Uint8Array): Promise<{ bytesRead: number }>;
  close(): Promise<void>;
}

interface DirectoryDeps {
  clock: Clock;
  /** The file system. Default: Node's own. */
  disk?: ArchiveDisk;
}

/** The archive counts as full if its free space is below this. */
export const leastFreeBytes = 100 * 2 ** 20;

/**
 * The prefix of the file that is written, read and deleted. Its name is the same at each check, so that a killed agent leaves at
 * most one file.
 */
const testFilePrefix = '.svc-agent-write-check-';
const testFile = `${testFilePrefix}${createHash('sha256').update(hostname()).digest('hex').slice(0, 12)}`;

/** What a check remembers for the next check, across restarts. */
interface DirectoryMemory {
  uri: string;
  /** Whether the directory was seen, so that its absence is a fault. */
  existed?: boolean;
  /** Whether the agent could write to the directory, so that a refusal is a fault. */
  written?: boolean;
  /** The time of the newest file in the last complete pass, ms since the epoch. */
  newestMs?: number;
}

type DirectoryFinding = Pick<Finding, 'msg' | 'gauges' | 'details'> & { memory: DirectoryMemory };

/** Creates the probe. A file system that hangs occupies one thread, not one more with each check. */
export function createDirectoryProbe(
  directory: string,
  target: ArchiveTarget,
  { clock, disk = files }: DirectoryDeps,
): Probe {
  const walk = createDirectoryWalk(directory, { ignore: testFilePrefix }, { disk, clock });
  let hanging: Promise<Finding> | undefined;
  return {
    async check(signal, recalled) {
      if (hanging) {
        return { reason: 'too_slow', msg: `${directory}: an earlier check still waits for the file system` };
      }
      const memory = memoryOf(recalled, target.uri);
      const checking = checkDirectory({ directory, target, disk, walk, signal }, memory).then(
        ({ memory: remember, ...found }): Finding => ({ ...found, remember }),
        failed(directory, memory),
      );
      hanging = checking.finally(() => {
        hanging = undefined;
      });
      return withinTime(hanging, signal, directory);
    },
    close: () => walk.close(),
  };
}

interface Context {
  directory: string;
  target: ArchiveTarget;
  disk: ArchiveDisk;
  walk: DirectoryWalk;
  signal: AbortSignal;
}

async function checkDirectory(context: Context, memory: DirectoryMemory): Promise<DirectoryFinding> {
  const { directory, target, disk } = context;
  const stats = await disk.stat(directory).catch((error: unknown) => {
    // The service creates the directory when it archives for the first time.
    if (systemCode(error) === 'ENOENT' && target.isWritten && !memory.existed) return undefined;
    return refused('it cannot be accessed')(error);
  });
  if (stats === undefined) return checkNotCreated(context, memory);
  if (!stats.isDirectory()) throw new ProbeError('not_found', 'it is not a directory');
  // A check that fails from here on has seen the directory, too.
  memory.existed = true;
  const freeBytes = await checkSpace(directory, target, disk);
  const writing = await checkWriting(context, stats, memory);
  const newest = await checkNewest(context, memory);
  const reading = newest.file && target.readCheck ? await checkReading(newest.file.path, disk) : undefined;
  const modes = modesText(target, stats, newest.file);
  return {
    msg: [
      `${writing.msg}, ${gibibytes(freeBytes)} free`,
      newest.msg,
      ...(reading ? [reading.msg] : []),
      ...modes,
    ].join('; '),
    gauges: newestGauge(target, newest.knownMs),
    details: {
      freeBytes,
      writable: writing.isWritable ?? 'unknown',
      readable: reading && (reading.isReadable ?? 'unknown'),
      ...newest.details,
    },
    memory: {
      ...memory,
      written: writing.isWritable || memory.written,
      newestMs: newest.knownMs ?? memory.newestMs,
    },
  };
}

/** Checks a directory that does not exist yet: this is not a fault, but its file system must have room. */
async function checkNotCreated(
  { directory, target, disk }: Context,
  memory: DirectoryMemory,
): Promise<DirectoryFinding> {
  let parent = dirname(directory.replace(/\/+$/, ''));
  while (parent !== dirname(parent) && (await isMissing(parent, disk))) parent = dirname(parent);
  const freeBytes = await checkSpace(parent, target, disk);
  return {
    msg: `does not exist yet: the service creates it when it archives for the first time; ${gibibytes(freeBytes)} free`,
    gauges: [],
    details: { exists: false, freeBytes },
    memory,
  };
}

async function isMissing(path: string, disk: ArchiveDisk): Promise<boolean> {
  return disk.stat(path).then(
    () => false,
    (error: unknown) => systemCode(error) === 'ENOENT' || refused('its parent cannot be accessed')(error),
  );
}

/** The number of bytes that users without privileges may still write. Throws for a full archive that is written to. */
async function checkSpace(path: string, { isWritten }: ArchiveTarget, disk: ArchiveDisk): Promise<number> {
  const file = await disk.statfs(path).catch(refused('its file system cannot be accessed'));
  const freeBytes = file.bavail * file.bsize;
  if (isWritten && freeBytes < leastFreeBytes) {
    const least = `less than ${leastFreeBytes / 2 ** 20} MiB`;
    throw new ProbeError('no_space', `${least} free: ${Math.floor(freeBytes / 2 ** 20)} MiB`);
  }
  // A file system without a fixed number of inodes reports none at all.
  if (isWritten && file.files > 0 && file.ffree === 0) throw new ProbeError('no_space', 'no inodes free');
  return freeBytes;
}

// Writing

interface Writing {
  /** Undefined if it is not known. */
  isWritable?: true;
  msg: string;
}

/**
 * Writes, reads and deletes a small file. A refusal is a fault only if it cannot be due to the agent's own user or mount: the
 * file system itself is read-only, the agent owns the directory, or it could write there before. In all other cases it is not
 * known whether the service can write.
 */
async function checkWriting(
  { directory, target, disk }: Context,
  stats: Stats,
  memory: DirectoryMemory,
): Promise<Writing> {
  if (!target.isWritten) return { msg: 'readable' };
  if (!target.writeCheck) return { msg: 'readable, writing is not tested' };
  try {
    await writeReadDelete(join(directory, testFile), disk);
    return { isWritable: true, msg: 'writable' };
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (code === 'ENOSPC' || code === 'EDQUOT') throw new ProbeError('no_space', errorText(error), error);
    if (!['EACCES', 'EPERM', 'EROFS'].includes(code)) refused('it cannot be written')(error);
    const isReadOnly = code === 'EROFS' && (await isFileSystemReadOnly(stats.dev, disk));
    const who = `the agent’s user (uid ${process.geteuid?.() ?? 'unknown'}) has no permission to write`;
    const why = isReadOnly
      ? 'its file system is mounted read-only'
      : code === 'EROFS'
        ? 'it is mounted read-only for the agent'
        : who;
    const isOwner = code !== 'EROFS' && stats.uid === process.geteuid?.();
    if (isReadOnly || isOwner || memory.written) throw new ProbeError('not_writable', why, error);
    return { msg: `readable, whether the service can write is not known (${why})` };
  }
}

async function writeReadDelete(path: string, disk: ArchiveDisk): Promise<void> {
  const text = `svc-agent ${new Date().toISOString()}\n`;
  const write = () => disk.writeFile(path, text, { flag: 'wx', mode: 0o600 });
  await write().catch(async (error: unknown) => {
    // The file was left by an agent that was killed.
    if (systemCode(error) !== 'EEXIST') throw error;
    await disk.unlink(path);
    await write();
  });
  let read: string;
  try {
    read = await disk.readFile(path, 'utf8');
  } finally {
    await disk.unlink(path);
  }
  if (read !== text) throw new ProbeError('failed', 'a file that was written reads back with other content');
}

/**
 * Whether a file system is read-only for everybody, and not only in the agent's own mount, as in a container or under systemd's
 * ProtectSystem. The options of the superblock in /proc/self/mountinfo show it.
 */
async function isFileSystemReadOnly(device: number, disk: ArchiveDisk): Promise<boolean> {
  const mounts = await disk.readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  const [major, minor] = [(device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00)];
  const entries = mounts.split('\n').filter((line) => line.split(' ')[2] === `${major}:${minor}`);
  return entries.some((line) => line.split(' ').at(-1)?.split(',').includes('ro'));
}

// Reading

/** How many bytes are read: enough to see that the content comes back. */
const readBytes = 4096;

/**
 * Reads the beginning of an archived file. A refusal does not show what the service may read. Throws ProbeError if the file is
 * empty, or if the file system does not return its content.
 */
async function checkReading(path: string, disk: ArchiveDisk): Promise<{ isReadable?: true; msg: string }> {
  try {
    const file = await disk.open(path);
    try {
      const { bytesRead } = await file.read(new Uint8Array(readBytes));
      if (bytesRead === 0) throw new ProbeError('invalid_answer', `the newest file, ${path}, is empty`);
      return { isReadable: true, msg: 'it can be read back' };
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (code === 'ENOENT') return { msg: 'it was deleted meanwhile' };
    if (!['EACCES', 'EPERM'].includes(code))
      return refused(`the newest file, ${path}, cannot be read`)(error);
    return { msg: 'whether it can be read is not known: the agent’s user has no permission' };
  }
}

const octal = (mode: number): string => `0${(mode & 0o777).toString(8).padStart(3, '0')}`;

/**
 * A text about permissions that exceed the configured ones, or lack some of the owner's; the service's umask may remove others.
 */
function modesText({ modes }: ArchiveTarget, { mode }: Stats, file: { mode: number } | undefined): string[] {
  const differs = (found: number, configured: number) =>
    (found & 0o777 & ~configured) !== 0 || (~found & configured & 0o700) !== 0;
  const directory = modes?.directory;
  return [
    ...(directory !== undefined && differs(mode, directory)
      ? [`the directory has mode ${octal(mode)}, but dirMode is ${octal(directory)}`]
      : []),
    ...(file && modes?.file !== undefined && differs(file.mode, modes.file)
      ? [`its newest file has mode ${octal(file.mode)}, but fileMode is ${octal(modes.file)}`]
      : []),
  ];
}

// The newest file

const gaps: Readonly<Record<WalkGap, string>> = {
  depth: `it has directories more than ${maxDepth} levels deep`,
  unreadable: 'parts of it cannot be read',
};

async function checkNewest({ walk, signal }: Context, memory: DirectoryMemory) {
  await walk.advance(signal).catch((error: unknown) => {
    signal.throwIfAborted();
    return refused('it cannot be read')(error);
  });
  const { current, last } = walk;
  const wholeMs = last === undefined ? memory.newestMs : last.gap === undefined ? last.newestMs : undefined;
  const isKnown = last === undefined ? memory.newestMs !== undefined : last.gap === undefined;
  const knownMs = isKnown ? later(wholeMs, current?.newestMs) : undefined;
  const seenMs = later(last?.newestMs, current?.newestMs);
  const counted = last ?? current;
  const isLater = (current?.newestMs ?? 0) >= (last?.newestMs ?? 0);
  return {
    knownMs,
    file: (isLater ? current?.newest : undefined) ?? last?.newest,
    msg: newestText({ isKnown, knownMs, seenMs, gap: last?.gap, isUnderWay: current !== undefined }),
    details: { files: counted?.files, complete: current === undefined && last?.gap === undefined },
  };
}

function newestText(newest: {
  isKnown: boolean;
  knownMs?: number;
  seenMs?: number;
  gap?: WalkGap;
  isUnderWay: boolean;
}): string {
  const { isKnown, knownMs, seenMs, gap, isUnderWay } = newest;
  const goesOn = 'it is large, and the next check continues the search';
  if (isKnown) {
    const text = knownMs === undefined ? 'no file yet' : `newest file from ${timeText(knownMs)}`;
    return isUnderWay ? `${text}, or later; ${goesOn}` : text;
  }
  const seen = seenMs === undefined ? 'no file seen' : `newest file seen from ${timeText(seenMs)}`;
  return `${seen}; ${gap === undefined ? goesOn : `not all of it was searched: ${gaps[gap]}`}`;
}

// Results

const reasons: Readonly<Record<string, ArchiveFailureReason>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  EACCES: 'denied',
  EPERM: 'denied',
};

/** Throws an error of the file system as ProbeError, according to its code. */
function refused(what: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof ProbeError) throw error;
    const code = systemCode(error) ?? '';
    const reason = Object.hasOwn(reasons, code) ? reasons[code]! : 'failed';
    throw new ProbeError(reason, `${what} (${errorText(error)})`, error);
  };
}

const gibibytes = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

function memoryOf(recalled: unknown, uri: string): DirectoryMemory {
  const { existed, written, newestMs, ...rest } = (recalled ?? {}) as Partial<
    Record<keyof DirectoryMemory, unknown>
  >;
  if (rest.uri !== uri) return { uri };
  return {
    uri,
    existed: existed === true,
    written: written === true,
    newestMs: Number.isFinite(newestMs) ? (newestMs as number) : undefined,
  };
}

/** The finding of the check, or a finding that it was not done when the signal aborted. */
function withinTime(check: Promise<Finding>, signal: AbortSignal, directory: string): Promise<Finding> {
  return untilAborted(check, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
    return { reason: 'too_slow', msg: `${directory}: the file system did not answer in time` };
  });
}

const failed =
  (directory: string, memory: DirectoryMemory) =>
  (error: unknown): Finding => ({
    reason: error instanceof ProbeError ? error.reason : 'failed',
    msg: `${directory}: ${errorText(error)}`,
    remember: memory,
  });
