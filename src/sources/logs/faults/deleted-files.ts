import { readlinkSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createSlice } from '../../../core/slices.ts';

/** A deleted file that grew while a process had it open. */
export interface DeletedFile {
  /** The path before the file was deleted. */
  readonly path: string;
  /** The process that writes the file, if it can be found. */
  readonly writer?: { readonly pid: number; readonly command: string };
}

/** Finds deleted files that processes still write to, in `/proc`. Without `/proc` it finds nothing. */
interface DeletedFiles {
  /** The files that grew since the previous call, and the files that have grown before and are still open. */
  look(): Promise<readonly DeletedFile[]>;
}

/** A descriptor as `/proc/PID/fd` lists it. */
interface Holding {
  readonly pid: number;
  readonly fd: string;
  readonly path: string;
}

interface Seen {
  bytes: number;
  hasGrown: boolean;
  writer?: DeletedFile['writer'];
  isLookedFor: boolean;
  round: number;
}

const mark = ' (deleted)';

/**
 * The target of a descriptor; empty if the descriptor was closed meanwhile. The call is synchronous because the kernel answers at
 * once: with a promise for each descriptor, a host with some thousands of descriptors would take three times as long.
 */
function targetOf(descriptor: string): string {
  try {
    return readlinkSync(descriptor);
  } catch {
    return '';
  }
}

/** Deleted files that a process has open and that `isLog` accepts; none if the agent is not permitted to look at the process. */
async function deletedOf(pid: number, isLog: (path: string) => boolean): Promise<Holding[]> {
  const folder = `/proc/${pid}/fd`;
  const fds = await readdir(folder).catch(() => []);
  const found: Holding[] = [];
  const slice = createSlice();
  for (const fd of fds) {
    if (slice.isOver()) await slice.next();
    const target = targetOf(`${folder}/${fd}`);
    if (!target.endsWith(mark)) continue;
    const path = target.slice(0, -mark.length);
    if (isLog(path)) found.push({ pid, fd, path });
  }
  return found;
}

async function otherProcesses(): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  return names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid).map(Number);
}

const commandOf = async (pid: number): Promise<string> =>
  (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim();

/**
 * The agent holds a deleted file open while it grows, so its own descriptors show most of these files. The descriptors of other
 * processes are listed at the first call, for files that were deleted before the agent started, and once for each file that is
 * found, to name the process that writes it.
 */
export function createDeletedFiles(isLog: (path: string) => boolean): DeletedFiles {
  /** Files by device and inode. */
  const seen = new Map<string, Seen & { path: string }>();
  let others: Holding[] | undefined;
  let round = 0;

  const note = async ({ pid, fd, path }: Holding): Promise<void> => {
    const facts = await stat(`/proc/${pid}/fd/${fd}`).catch(() => undefined);
    if (!facts || facts.nlink > 0) return;
    const key = `${facts.dev} ${facts.ino}`;
    const known = seen.get(key);
    if (!known) {
      seen.set(key, { path, bytes: facts.size, hasGrown: false, isLookedFor: false, round });
      return;
    }
    known.hasGrown ||= facts.size > known.bytes;
    known.bytes = facts.size;
    known.round = round;
    if (pid !== process.pid) known.writer ??= { pid, command: await commandOf(pid) };
  };
  const listOthers = async () => {
    others = [];
    for (const pid of await otherProcesses()) others.push(...(await deletedOf(pid, isLog)));
  };

  return {
    async look() {
      round++;
      const own = await deletedOf(process.pid, isLog);
      if (others === undefined) await listOthers();
      for (const holding of [...own, ...others!]) await note(holding);
      const nameless = [...seen.values()].filter((one) => one.hasGrown && !one.writer && !one.isLookedFor);
      if (nameless.length > 0) {
        for (const one of nameless) one.isLookedFor = true;
        await listOthers();
        for (const holding of others!) await note(holding);
      }
      for (const [key, one] of seen) if (one.round !== round) seen.delete(key);
      return [...seen.values()]
        .filter(({ hasGrown }) => hasGrown)
        .map(({ path, writer }) => ({ path, writer }));
    },
  };
}
