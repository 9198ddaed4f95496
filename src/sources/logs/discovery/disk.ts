import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { errorText, systemCode } from '../../../core/errors.ts';
import type { Log, LogLevel } from '../../../core/ports.ts';

/** What the system reports about a file; `dev` and `ino` do not fit a number everywhere (overlayfs, btrfs). */
export interface FileStat {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: number;
  readonly mtimeNs: bigint;
  readonly nlink: number;
  readonly kind: 'file' | 'directory' | 'other';
}

/** A name in a directory; `unknown` where the file system does not report it or a link must be followed first. */
export interface Entry {
  readonly name: string;
  readonly kind: 'file' | 'directory' | 'other' | 'unknown';
}

/**
 * The system calls that tailing needs, each one synchronous step, so that tests can simulate faults. A name that is not UTF-8
 * keeps its odd bytes as lone surrogates (U+DC80 to U+DCFF), which lead back to the same file.
 */
export interface Disk {
  list(directory: string): Entry[];
  /** Follows links. Undefined if nothing is there; throws on every other error. */
  stat(path: string): FileStat | undefined;
  /** The path without links; the path itself if it cannot be resolved. */
  real(path: string): string;
  /** Opens a file for reading. Opening a pipe does not block. */
  open(path: string): number;
  close(fd: number): void;
  fstat(fd: number): FileStat;
  read(fd: number, buffer: Buffer, start: number, length: number, position: number): number;
}

const absent = new Set(['ENOENT', 'ENOTDIR']);

/** Whether an error says that nothing is there, rather than that the path cannot be looked up. */
export const saysAbsent = (thrown: unknown): boolean => absent.has(systemCode(thrown) ?? '');

/** The descriptor of an open file if the file is the wanted one; otherwise it is closed. */
export function checked(disk: Disk, fd: number, isIt: (stat: FileStat) => boolean): number | undefined {
  let isWanted = false;
  try {
    isWanted = isIt(disk.fstat(fd));
  } finally {
    if (!isWanted) disk.close(fd);
  }
  return isWanted ? fd : undefined;
}

/** The name's bytes as text, reversible by `bytesOf`. */
function textOf(name: Buffer): string {
  const text = name.toString('utf8');
  if (!text.includes('\ufffd') || Buffer.from(text).equals(name)) return text;
  let escaped = '';
  for (const byte of name) escaped += String.fromCharCode(byte < 0x80 ? byte : 0xdc00 + byte);
  return escaped;
}

/** With `u`, a surrogate that belongs to a pair does not match. */
const loneByte = /([\udc80-\udcff])/u;

/** The path for a system call: the text itself, or its bytes if it has lone surrogates. */
function bytesOf(path: string): string | Buffer {
  if (!loneByte.test(path)) return path;
  const parts = path.split(loneByte);
  return Buffer.concat(
    parts.map((part) =>
      loneByte.test(part) ? Buffer.from([part.charCodeAt(0) - 0xdc00]) : Buffer.from(part),
    ),
  );
}

function statOf(stats: BigIntStats): FileStat {
  const kind = stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : 'other';
  const { dev, ino, mtimeNs } = stats;
  return { dev, ino, mtimeNs, kind, size: Number(stats.size), nlink: Number(stats.nlink) };
}

function list(directory: string): Entry[] {
  const entries = readdirSync(bytesOf(directory), { withFileTypes: true });
  const named = entries.every((entry) => !entry.name.includes('\ufffd'))
    ? entries.map((entry) => ({ name: entry.name, entry }))
    : readdirSync(bytesOf(directory), { withFileTypes: true, encoding: 'buffer' }).map((entry) => ({
        name: textOf(entry.name),
        entry,
      }));
  return named.map(({ name, entry }) => {
    if (entry.isFile()) return { name, kind: 'file' };
    if (entry.isDirectory()) return { name, kind: 'directory' };
    const special = entry.isFIFO() || entry.isSocket() || entry.isCharacterDevice() || entry.isBlockDevice();
    return { name, kind: special ? 'other' : 'unknown' };
  });
}

function stat(path: string): FileStat | undefined {
  try {
    const stats = statSync(bytesOf(path), { bigint: true, throwIfNoEntry: false });
    return stats && statOf(stats);
  } catch (thrown) {
    if (saysAbsent(thrown)) return undefined;
    throw thrown;
  }
}

function real(path: string): string {
  try {
    return textOf(realpathSync.native(bytesOf(path) as string, { encoding: 'buffer' }));
  } catch {
    return path;
  }
}

export const systemDisk: Disk = {
  list,
  stat,
  real,
  open: (path) => openSync(bytesOf(path), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY),
  close: closeSync,
  fstat: (fd) => statOf(fstatSync(fd, { bigint: true })),
  read: readSync,
};

/** Looks up a file where it was last seen; 'hidden' if the path cannot be looked up. */
export function statReal(
  disk: Pick<Disk, 'stat'>,
  { real, dev, ino }: Pick<FileStat, 'dev' | 'ino'> & { readonly real: string },
): FileStat | 'hidden' | undefined {
  try {
    const stat = disk.stat(real);
    return stat && stat.dev === dev && stat.ino === ino ? stat : undefined;
  } catch (thrown) {
    return saysAbsent(thrown) ? undefined : 'hidden';
  }
}

/** Problems that prevent a path from being read. Each problem of a path is logged once until it changes. */
export interface Problems {
  report(path: string, what: string, thrown?: unknown, level?: LogLevel): void;
  resolve(path: string, what?: string): void;
  /** The newest unresolved problem of a path. */
  of(path: string): string | undefined;
}

/** How many paths have a remembered problem. Beyond that a problem may be logged again. */
const pathsLimit = 10_000;

export function createProblems(log: Log): Problems {
  const known = new Map<string, Map<string, string>>();
  return {
    report(path, what, thrown, level = 'warn') {
      const text = thrown === undefined ? what : `${what}: ${systemCode(thrown) ?? errorText(thrown)}`;
      if (known.size >= pathsLimit && !known.has(path)) known.clear();
      const problems = known.get(path) ?? new Map<string, string>();
      known.set(path, problems);
      if (problems.get(what) === text) return;
      problems.delete(what);
      problems.set(what, text);
      log.write(level, what, thrown === undefined ? { path } : { path, error: errorText(thrown) });
    },
    resolve(path, what) {
      if (what === undefined) known.delete(path);
      else known.get(path)?.delete(what);
    },
    of: (path) => [...(known.get(path)?.values() ?? [])].at(-1),
  };
}
