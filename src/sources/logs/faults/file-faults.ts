import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Clock, Stop } from '../../../core/ports.ts';
import { compilePatterns, type Patterns } from '../discovery/patterns.ts';
import type { FollowedFile } from '../files/tailer.ts';
import type { LogsSelection } from '../source.ts';
import { createDeletedFiles, type DeletedFile } from './deleted-files.ts';

/** What prevents a service from writing a log that the agent can read. */
export interface LogFault {
  /**
   * The kind of the fault. `gone`: the log was there and is not there any more. `disk_full`: its file system has no free space
   * and it does not grow. `deleted`: a process writes to it although it was deleted.
   */
  readonly kind: 'gone' | 'disk_full' | 'deleted';
  /** The path of the file, or the patterns that no file matches any more. */
  readonly path: string;
  readonly services: readonly string[];
  readonly sinceMs: number;
  readonly writer?: DeletedFile['writer'];
}

type FoundFault = Omit<LogFault, 'sinceMs'>;

/** Watches for faults of log files that do not show in what is read. */
export interface FileFaults {
  /** The faults as the last check found them. */
  faults(): readonly LogFault[];
  check(): Promise<void>;
  /** Checks at regular intervals. The returned function ends the checks. */
  start(): Stop;
}

export interface FileFaultsDeps {
  selection(): LogsSelection;
  files(): readonly FollowedFile[];
  clock: Clock;
  /**
   * The number of bytes that are free for processes without privileges in the file system of a directory; the default asks the
   * system.
   */
  freeBytes?(directory: string): Promise<number>;
}

/** The time between two checks. A fault is reported after two checks in a row found it. */
const intervalMs = 20_000;
/** The delay of the first check. That check reads the descriptors of every process, and would slow the start of the agent. */
const firstMs = 1_000;
/** How many file systems and files are looked at in one check. */
const mostDirectories = 100;
const mostFiles = 1000;

async function systemFreeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

const isLiteral = (pattern: string) => pattern !== '-' && !/[*?[\]{}]/.test(pattern);

/** Finds logs that were there and are gone. */
function createGone({ selection }: FileFaultsDeps) {
  /** Paths without wildcards that this process has seen. */
  const seen = new Set<string>();
  return (files: readonly FollowedFile[]): FoundFault[] => {
    const { services, selected } = selection();
    return [...selected].flatMap((service) => {
      const patterns = (services[service]?.paths ?? []).filter((pattern) => pattern !== '-');
      if (patterns.length === 0) return [];
      const literal = patterns.filter(isLiteral).map((path) => resolve(path));
      const present = literal.filter((path) => existsSync(path));
      for (const path of present) seen.add(path);
      const isThere = ({ path, services }: FollowedFile) => services.includes(service) && existsSync(path);
      const hasFile = present.length > 0 || files.some(isThere);
      if (!hasFile) return [{ kind: 'gone' as const, path: patterns.join(', '), services: [service] }];
      return literal
        .filter((path) => seen.has(path) && !present.includes(path))
        .map((path) => ({ kind: 'gone' as const, path, services: [service] }));
    });
  };
}

/** Finds logs that have not grown since the previous check and are in file systems without free space. */
function createDiskFull({ freeBytes = systemFreeBytes }: FileFaultsDeps) {
  let sizes = new Map<string, number>();
  return async (files: readonly FollowedFile[]): Promise<FoundFault[]> => {
    const last = sizes;
    sizes = new Map(files.slice(0, mostFiles).map(({ path, offset, lagBytes }) => [path, offset + lagBytes]));
    const directories = [...new Set([...sizes.keys()].map((path) => dirname(path)))].slice(
      0,
      mostDirectories,
    );
    const full = new Set<string>();
    for (const directory of directories)
      if ((await freeBytes(directory).catch(() => undefined)) === 0) full.add(directory);
    if (full.size === 0) return [];
    return files
      .filter(({ path }) => full.has(dirname(path)) && last.get(path) === sizes.get(path))
      .map(({ path, services }) => ({ kind: 'disk_full', path, services }));
  };
}

export function createFileFaults(deps: FileFaultsDeps): FileFaults {
  const { selection, clock } = deps;
  const gone = createGone(deps);
  const diskFull = createDiskFull(deps);
  let patterns: Patterns;
  // The name of a deleted file that was rotated contains the name of its log.
  const claimantsOf = (path: string) => patterns.claimants([path, path.replace(/[.-]\d[^/]*$/, '')]);
  const deleted = createDeletedFiles((path) => claimantsOf(path).length > 0);
  /** The time of the first check that found a fault, by kind and path. */
  let known = new Map<string, number>();
  let faults: readonly LogFault[] = [];
  let isEnded = false;
  let cancel = () => {};

  const check = async () => {
    const { services, selected } = selection();
    patterns = compilePatterns(services, selected);
    const files = deps.files().filter(({ state }) => !state.startsWith('not read: '));
    const written = (await deleted.look()).map(
      ({ path, writer }): FoundFault => ({ kind: 'deleted', path, writer, services: claimantsOf(path) }),
    );
    const writtenPaths = new Set(written.map(({ path }) => path));
    const missing = gone(files).filter(({ path }) => !writtenPaths.has(path));
    const found = [...written, ...missing, ...(await diskFull(files))];
    const nowMs = clock.nowMs();
    const next = new Map<string, number>();
    const lasting: LogFault[] = [];
    for (const fault of found) {
      const key = `${fault.kind} ${fault.path}`;
      const sinceMs = known.get(key) ?? nowMs;
      next.set(key, sinceMs);
      // The other faults are found by a comparison of two checks, so they are certain at once. That a log is gone is certain only
      // after the second check.
      if (fault.kind !== 'gone' || known.has(key)) lasting.push({ ...fault, sinceMs });
    }
    known = next;
    faults = lasting;
  };
  const repeat = async () => {
    await check();
    if (!isEnded) cancel = clock.after(intervalMs, () => void repeat());
  };

  return {
    faults: () => faults,
    check,
    start() {
      cancel = clock.after(firstMs, () => void repeat());
      return async () => {
        isEnded = true;
        cancel();
      };
    },
  };
}
