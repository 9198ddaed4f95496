import { basename, dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { systemCode } from '../../../core/errors.ts';
import { checked, type Disk, type FileStat, type Problems, saysAbsent } from '../discovery/disk.ts';
import { fileKey } from '../discovery/picture.ts';
import { isSameLog } from '../discovery/rotated-names.ts';
import type { Slices } from '../discovery/schedule.ts';
import { type Content, headBytes, tailBytes } from './chain.ts';
import { inflated, inflateSmall, isGzipStart, outlineOf } from './gzip.ts';

/** A file as a scan saw it, under each of its names. */
export interface Seen {
  readonly stat: FileStat;
  readonly paths: readonly string[];
}

interface Opened {
  readonly fd: number;
  /** The path at which the file was opened. */
  readonly path: string;
  /** False once the descriptor is closed or handed over. */
  isOpen: boolean;
}

/**
 * Files that are not followed, open to be compared, a few at a time. A file must have the inode that the scan saw: while a
 * rotation renames files, a path soon leads to another file.
 */
export interface ComparedFiles {
  /** Opens a file. 'moved': its names lead to another file, or to none, by now. */
  open(file: Seen): Opened | 'moved' | 'denied';
  /** Takes over an open descriptor of the file, so that its content can be read even if the file is renamed or deleted. */
  adopt(file: Seen, fd: number): void;
  /** Hands the descriptor over to the caller, who closes it. */
  take(file: Seen): number | undefined;
  /** Closes everything. */
  release(): void;
}

const cannotCompare = 'file cannot be compared';
/** How often one scan lists a directory again because files in it were renamed meanwhile. */
const lookupsLimit = 4;

/** Opens files for comparison, at most `openLimit` at a time. An open file can be read even if it is deleted meanwhile. */
export function createComparedFiles(disk: Disk, problems: Problems, openLimit: number): ComparedFiles {
  const opened = new Map<string, Opened>();
  /** For each directory, the current paths of its files. */
  const moved = new Map<string, Map<string, string>>();
  let lookups = lookupsLimit;

  const take = (key: string): number | undefined => {
    const own = opened.get(key);
    opened.delete(key);
    if (own) own.isOpen = false;
    return own?.fd;
  };

  const close = (key: string) => {
    const fd = take(key);
    if (fd !== undefined) disk.close(fd);
  };

  const makeRoom = () => {
    const [oldest] = opened.keys();
    if (opened.size >= openLimit && oldest !== undefined) close(oldest);
  };

  const openAt = (path: string, { stat, paths }: Seen): number | undefined => {
    // A smaller file under a name that was not listed is a new file that was given the inode meanwhile.
    const isIt = ({ dev, ino, size }: FileStat) =>
      dev === stat.dev && ino === stat.ino && (size >= stat.size || paths.includes(path));
    return checked(disk, disk.open(path), isIt);
  };

  /** The current paths of a directory's files, by inode. */
  const indexOf = (directory: string): Map<string, string> => {
    const places = new Map<string, string>();
    for (const { name, kind } of disk.list(directory)) {
      const stat = kind === 'file' ? disk.stat(`${directory}/${name}`) : undefined;
      if (stat) places.set(fileKey(stat), `${directory}/${name}`);
    }
    return places;
  };

  /** The names of the file, followed by the name that a rotation has given it since the scan listed it. */
  function* pathsOf({ stat, paths }: Seen): Generator<string> {
    yield* paths;
    const directory = dirname(paths[0]!);
    const before = moved.get(directory)?.get(fileKey(stat));
    if (before !== undefined) yield before;
    if (lookups-- <= 0) return;
    try {
      moved.set(directory, indexOf(directory));
    } catch {
      // The next scan reports a directory that cannot be listed.
    }
    const now = moved.get(directory)?.get(fileKey(stat));
    if (now !== undefined && now !== before) yield now;
  }

  return {
    open(file) {
      const key = fileKey(file.stat);
      // Under an unrelated name, the inode may belong to a new file.
      const isRelated = (path: string) =>
        file.paths.includes(path) || isSameLog(basename(path), basename(file.paths[0]!));
      const known = opened.get(key);
      if (known && isRelated(known.path)) return known;
      let isDenied = false;
      for (const path of pathsOf(file)) {
        if (!isRelated(path)) continue;
        try {
          makeRoom();
          const fd = openAt(path, file);
          if (fd === undefined) continue;
          close(key);
          const own = { fd, path, isOpen: true };
          opened.set(key, own);
          problems.resolve(path, cannotCompare);
          return own;
        } catch (thrown) {
          if (saysAbsent(thrown)) continue;
          isDenied = true;
          problems.report(path, cannotCompare, thrown, 'debug');
        }
      }
      return isDenied ? 'denied' : 'moved';
    },
    adopt({ stat, paths }, fd) {
      close(fileKey(stat));
      makeRoom();
      opened.set(fileKey(stat), { fd, path: paths[0]!, isOpen: true });
    },
    take: ({ stat }) => take(fileKey(stat)),
    release() {
      for (const key of [...opened.keys()]) close(key);
      moved.clear();
      lookups = lookupsLimit;
    },
  };
}

/**
 * Why a content cannot be read. 'moved': the names of the file lead to another file, or to none, by now; 'unfinished': a gzip
 * file without an end.
 */
export type Unreadable = 'moved' | 'denied' | 'unfinished';

/** Reads the contents of files that are not followed. */
export interface Contents {
  /** The current content of a file. */
  of(file: Seen): Content | Unreadable;
  /**
   * Whether the file holds the first bytes of an open file, or all of them; both are compared byte by byte at their beginning and
   * end. Undefined if the file cannot be opened any more.
   */
  isPrefixOf(file: Seen, fd: number): boolean | undefined;
  /** Whether an open plain file begins with the content of an archive. */
  beginsWith(fd: number, archive: Content): Promise<boolean>;
}

interface ContentsDeps {
  disk: Disk;
  compared: ComparedFiles;
  problems: Problems;
  slices: Pick<Slices, 'spent' | 'turn'>;
}

const chunkBytes = 256 * 1024;
/**
 * The checksum of a plain file is computed over its bytes up to this position. For longer prefixes, the marks and the bytes
 * before the offset decide.
 */
const summedBytes = 16 * 1024 * 1024;
const compareBytes = 4096;

const prefixOf = (bytes: Buffer, length: number) => ({
  sum: crc32(bytes.subarray(0, length)),
  tail: bytes.toString('latin1', Math.max(0, length - tailBytes), length),
});

const whole = (bytes: Buffer): Content => ({
  size: bytes.length,
  start: bytes.subarray(0, headBytes),
  isGzip: true,
  prefix: async (length) => prefixOf(bytes, length),
});

function readAt(disk: Disk, fd: number, length: number, position: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  return length === 0 ? bytes : bytes.subarray(0, disk.read(fd, bytes, 0, length, position));
}

function tailAt(disk: Disk, fd: number, length: number): string {
  const kept = Math.min(tailBytes, length);
  return readAt(disk, fd, kept, length - kept).toString('latin1');
}

/** Contents of plain files. */
function createPlain({ disk, compared, slices }: ContentsDeps) {
  return (file: Seen, size: number, start: Buffer): Content => {
    let at = 0;
    let sum = 0;
    return {
      size,
      start,
      isGzip: false,
      async prefix(length) {
        if (length <= start.length) return prefixOf(start, length);
        const isSummed = length <= summedBytes;
        if (length < at) [at, sum] = [0, 0];
        while (isSummed && at < length) {
          // The file may have been closed to make room for others.
          const own = compared.open(file);
          if (typeof own === 'string') return undefined;
          const bytes = readAt(disk, own.fd, Math.min(chunkBytes, length - at), at);
          if (bytes.length === 0) return undefined;
          sum = crc32(bytes, sum);
          at += bytes.length;
          if (at < length && slices.spent()) await slices.turn();
        }
        const own = compared.open(file);
        if (typeof own === 'string') return undefined;
        return { sum: isSummed ? sum : undefined, tail: tailAt(disk, own.fd, length) };
      },
    };
  };
}

/** Contents of archives that are too large to be inflated at once; 'unfinished' if the end is missing. */
function createPacked({ disk, compared, problems, slices }: ContentsDeps) {
  /** The checksum and the last bytes of the first plain bytes of a gzip file; inflates it in bounded memory. */
  const inflatedPrefix = async (file: Seen, length: number) => {
    const own = compared.open(file);
    if (typeof own === 'string') return undefined;
    let at = 0;
    let sum = 0;
    let tail = '';
    try {
      for await (const chunk of inflated(disk, own.fd, () => own.isOpen)) {
        const bytes = chunk.subarray(0, length - at);
        sum = crc32(bytes, sum);
        at += bytes.length;
        tail = (tail + bytes.subarray(-tailBytes).toString('latin1')).slice(-tailBytes);
        if (at >= length) return { sum, tail };
        if (slices.spent()) await slices.turn();
      }
    } catch (thrown) {
      problems.report(file.paths[0]!, cannotCompare, thrown, 'debug');
    }
    return undefined;
  };

  return (file: Seen, fd: number, packedSize: number): Content | 'unfinished' => {
    const outline = outlineOf(disk, fd, packedSize);
    if (!outline) return 'unfinished';
    const { size, start, sum } = outline;
    return {
      size,
      start,
      isGzip: true,
      async prefix(length) {
        if (length === size) return { sum };
        return length <= start.length ? prefixOf(start, length) : inflatedPrefix(file, length);
      },
    };
  };
}

export function createContents(deps: ContentsDeps): Contents {
  const { disk, compared, problems, slices } = deps;
  const plain = createPlain(deps);
  const large = createPacked(deps);
  /** The content of an open file at this size and time. */
  const held = new WeakMap<
    object,
    { readonly size: number; readonly mtimeNs: bigint; readonly content: Content | 'unfinished' }
  >();

  const read = (file: Seen, fd: number, size: number): Content | 'unfinished' => {
    const wanted = Math.min(size, headBytes);
    const start = readAt(disk, fd, wanted, 0);
    // The file may have been truncated after its size was looked up.
    if (!isGzipStart(start)) return plain(file, start.length < wanted ? start.length : size, start);
    const small = inflateSmall(disk, fd, size);
    if (small === undefined) return large(file, fd, size);
    return small === 'unfinished' || small.length === 0 ? 'unfinished' : whole(small);
  };

  return {
    of(file) {
      const own = compared.open(file);
      if (typeof own === 'string') return own;
      try {
        const { size, mtimeNs } = disk.fstat(own.fd);
        const before = held.get(own);
        if (before?.size === size && before.mtimeNs === mtimeNs) return before.content;
        const content = read(file, own.fd, size);
        held.set(own, { size, mtimeNs, content });
        return content;
      } catch (thrown) {
        if (systemCode(thrown) === undefined) throw thrown;
        problems.report(file.paths[0]!, cannotCompare, thrown, 'debug');
        return 'denied';
      }
    },
    isPrefixOf(file, fd) {
      const own = compared.open(file);
      if (typeof own === 'string') return undefined;
      const { size } = disk.fstat(own.fd);
      const length = Math.min(size, compareBytes);
      const isSame = (position: number) => {
        const bytes = readAt(disk, own.fd, length, position);
        return bytes.length === length && readAt(disk, fd, length, position).equals(bytes);
      };
      return size <= disk.fstat(fd).size && isSame(0) && isSame(size - length);
    },
    async beginsWith(fd, { size, start, prefix }) {
      const own = await prefix(size);
      if (own === undefined || disk.fstat(fd).size < size) return false;
      if (!readAt(disk, fd, start.length, 0).equals(start)) return false;
      if (own.tail !== undefined && own.tail !== tailAt(disk, fd, size)) return false;
      if (own.sum === undefined || size > summedBytes) return true;
      let sum = 0;
      for (let at = 0; at < size; at += chunkBytes) {
        sum = crc32(readAt(disk, fd, Math.min(chunkBytes, size - at), at), sum);
        if (slices.spent()) await slices.turn();
      }
      return sum === own.sum;
    },
  };
}
