import type { Disk, Entry, FileStat } from '../../src/sources/logs/discovery/disk.ts';

/** A file's bytes. Its number is given to another file once no name and no descriptor is left. */
export interface ModelFile {
  ino: number;
  bytes: Buffer;
  length: number;
  mtimeMs: number;
  names: number;
  descriptors: number;
  /** The number of open descriptors through which the tailer has read from the file. */
  held: number;
  /** The largest size that the tailer saw in its present call, since the file was created or truncated. */
  seen: number;
  /** The status that the last scan found. */
  stat: FileStat | undefined;
  statMs: number;
}

type Node = { file: ModelFile } | { link: string };

/**
 * A directory in memory, and the directories in it, with the calls that a writer, a rotation and a tailer make. Each call is
 * atomic.
 */
export interface ModelDisk {
  readonly names: ReadonlyMap<string, Node>;
  /** How often something other than an append was done to a file. */
  readonly changes: number;
  create(name: string): ModelFile;
  file(name: string): ModelFile | undefined;
  /** Appends to a file; `last` is a byte that follows. */
  append(file: ModelFile, text: string | Uint8Array, last?: number): void;
  truncate(file: ModelFile): void;
  rename(from: string, to: string): void;
  unlink(name: string): void;
  link(name: string, target: string): void;
  hold(file: ModelFile): void;
  release(file: ModelFile): void;
  /** The name without links of the file to which this name leads. */
  nameOf(name: string): string | undefined;
  /**
   * The tailer's view. `before` runs before each of its calls, `closed` after a descriptor was closed. Descriptors belong to the
   * view.
   */
  view(
    before: (call: string, path?: string) => void,
    closed?: (file: ModelFile) => void,
  ): Disk & { closeAll(): void };
}

export const modelDirectory = '/logs';

const fault = (code: string) => Object.assign(new Error(`${code}: model`), { code });

interface ModelDiskOptions {
  /** The time of the disk. */
  nowMs(): number;
  /** Determines the order in which names are listed. */
  shuffle<T>(items: T[]): T[];
  /** The resolution of the timestamps; default 4. */
  tickMs?: number;
  /** Directories in the directory, such as `old`, including their parents. */
  directories?: readonly string[];
}

export const parentOf = (name: string) => name.slice(0, Math.max(0, name.lastIndexOf('/')));
const baseOf = (name: string) => name.slice(name.lastIndexOf('/') + 1);

export function createModelDisk(options: ModelDiskOptions): ModelDisk {
  const { nowMs, shuffle, tickMs = 4, directories = [] } = options;
  const names = new Map<string, Node>();
  const namesOfPaths = new Map<string, string>();
  const free: number[] = [];
  let lastIno = 100;
  let changes = 0;

  const stamp = () => Math.floor(nowMs() / tickMs) * tickMs;
  const reap = (file: ModelFile) => {
    if (file.names === 0 && file.descriptors === 0) free.push(file.ino);
  };
  const drop = (node: Node | undefined) => {
    if (!node || !('file' in node)) return;
    node.file.names--;
    reap(node.file);
  };
  const resolve = (name: string, depth = 0): { name: string; file: ModelFile } | undefined => {
    const node = names.get(name);
    if (!node || depth > 8) return undefined;
    return 'file' in node ? { name, file: node.file } : resolve(node.link, depth + 1);
  };
  const nameOf = (path: string): string | undefined => {
    let name = namesOfPaths.get(path);
    if (name === undefined && path.startsWith(`${modelDirectory}/`)) {
      name = path.slice(modelDirectory.length + 1);
      namesOfPaths.set(path, name);
    }
    return name;
  };
  /** The status of a file. It is the same object while nothing has changed, because 64-bit numbers are slow to create. */
  const statOf = (file: ModelFile): FileStat => {
    const { stat, length, mtimeMs, names } = file;
    if (length > file.seen) file.seen = length;
    if (stat?.size === length && stat.nlink === names && file.statMs === mtimeMs) return stat;
    file.statMs = mtimeMs;
    file.stat = {
      dev: 1n,
      ino: BigInt(file.ino),
      size: length,
      mtimeNs: BigInt(mtimeMs) * 1_000_000n,
      nlink: names,
      kind: 'file',
    };
    return file.stat;
  };
  const directoryStats = new Map(
    ['', ...directories].map((name, at): [string, FileStat] => [
      name,
      { dev: 1n, ino: BigInt(2 + at), size: 0, mtimeNs: 0n, nlink: 2, kind: 'directory' },
    ]),
  );
  const entriesOf = (directory: string): Entry[] => {
    const entries: Entry[] = [];
    for (const [name, node] of names) {
      if (directories.length > 0 && parentOf(name) !== directory) continue;
      entries.push({ name: baseOf(name), kind: 'file' in node ? 'file' : 'unknown' });
    }
    for (const name of directories)
      if (parentOf(name) === directory) entries.push({ name: baseOf(name), kind: 'directory' });
    return entries;
  };
  const directoryOf = (path: string): string | undefined =>
    path === modelDirectory ? '' : directoryStats.has(nameOf(path) ?? '') ? nameOf(path) : undefined;

  const view: ModelDisk['view'] = (before, closed) => {
    const open = new Map<number, ModelFile>();
    const holds = new Set<number>();
    let lastFd = 10;
    const fileOf = (fd: number) => {
      const file = open.get(fd);
      if (!file) throw fault('EBADF');
      return file;
    };
    const close = (fd: number) => {
      const file = fileOf(fd);
      open.delete(fd);
      file.descriptors--;
      if (holds.delete(fd)) file.held--;
      closed?.(file);
      reap(file);
    };
    return {
      list(path) {
        before('list', path);
        if (path === '/') return [{ name: 'logs', kind: 'directory' }];
        const directory = directoryOf(path);
        if (directory === undefined) throw fault('ENOENT');
        return shuffle(entriesOf(directory));
      },
      stat(path) {
        before('stat', path);
        if (path === '/') return directoryStats.get('');
        const directory = directoryOf(path);
        if (directory !== undefined) return directoryStats.get(directory);
        const found = resolve(nameOf(path) ?? '');
        return found && statOf(found.file);
      },
      real(path) {
        before('real', path);
        const found = resolve(nameOf(path) ?? '');
        return found ? `${modelDirectory}/${found.name}` : path;
      },
      open(path) {
        before('open', path);
        const found = resolve(nameOf(path) ?? '');
        if (!found) throw fault('ENOENT');
        found.file.descriptors++;
        open.set(++lastFd, found.file);
        return lastFd;
      },
      close,
      fstat(fd) {
        before('fstat');
        return statOf(fileOf(fd));
      },
      read(fd, buffer, start, length, position) {
        before('read');
        const file = fileOf(fd);
        if (!holds.has(fd)) {
          holds.add(fd);
          file.held++;
        }
        const end = Math.min(file.length, position + length);
        if (end <= position) return 0;
        return file.bytes.copy(buffer, start, position, end);
      },
      closeAll() {
        for (const fd of [...open.keys()]) close(fd);
      },
    };
  };

  return {
    names,
    get changes() {
      return changes;
    },
    view,
    create(name) {
      const known = names.get(name);
      if (known && 'file' in known) return known.file;
      changes++;
      const ino = free.pop() ?? ++lastIno;
      const bytes = Buffer.allocUnsafe(512);
      const file = {
        ino,
        bytes,
        length: 0,
        mtimeMs: stamp(),
        names: 1,
        descriptors: 0,
        held: 0,
        seen: 0,
        stat: undefined,
        statMs: 0,
      };
      names.set(name, { file });
      return file;
    },
    file: (name) => resolve(name)?.file,
    nameOf: (name) => resolve(name)?.name,
    append(file, added, last) {
      while (file.length + added.length >= file.bytes.length) {
        file.bytes = Buffer.concat([file.bytes, Buffer.allocUnsafe(file.bytes.length)]);
      }
      if (typeof added === 'string') file.bytes.write(added, file.length, 'latin1');
      else file.bytes.set(added, file.length);
      file.length += added.length;
      if (last !== undefined) file.bytes[file.length++] = last;
      file.mtimeMs = stamp();
    },
    truncate(file) {
      changes++;
      file.length = 0;
      file.seen = 0;
      file.mtimeMs = stamp();
    },
    rename(from, to) {
      const node = names.get(from);
      if (!node) throw fault('ENOENT');
      changes++;
      drop(names.get(to));
      names.delete(from);
      names.set(to, node);
    },
    unlink(name) {
      changes++;
      drop(names.get(name));
      names.delete(name);
    },
    link(name, target) {
      changes++;
      drop(names.get(name));
      names.set(name, { link: target });
    },
    hold: (file) => void file.descriptors++,
    release(file) {
      file.descriptors--;
      reap(file);
    },
  };
}
