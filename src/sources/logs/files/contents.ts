import { basename, dirname } from 'node:path';
import { constants, crc32, createGunzip, gunzipSync } from 'node:zlib';
import { systemCode } from '../../../core/errors.ts';
import { type Content, headBytes, tailBytes } from './chain.ts';
import { type Disk, type FileStat, saysAbsent } from './disk.ts';
import type { Problems } from './problems.ts';
import { isSameLog } from './rotated-names.ts';
import type { Slices } from './schedule.ts';

/** A file as a scan saw it, under each of its names. */
interface Seen {
  readonly stat: FileStat;
  readonly paths: readonly string[];
}

/** 'moved': another file, or none, is under its names by now; 'unfinished': a gzip file without an end. */
export type Unreadable = 'moved' | 'denied' | 'unfinished';

/**
 * Reads files that are not followed, to compare them, a few at a time. A file must have the inode that the scan saw: while a
 * rotation renames files, a path soon leads to another one.
 */
export interface Contents {
  /** What the file holds now. */
  of(file: Seen): Content | Unreadable;
  /**
   * Whether the file holds the first bytes of an open one, or all of them; compared byte by byte at their beginning and end.
   * Undefined if it cannot be opened any more.
   */
  isPrefixOf(file: Seen, fd: number): boolean | undefined;
  /** CRC-32 of an open file's first `size` bytes. */
  sumOf(fd: number, size: number): number;
  /** Takes an open descriptor of the file over: its content can be read even if it is renamed or deleted. */
  adopt(file: Seen, fd: number): void;
  /** Hands the descriptor over to the caller, who closes it. */
  take(file: Seen): number | undefined;
  /** Closes everything. */
  release(): void;
}

/** Whether a content is gzip, as far as its first two bytes are there. */
export const isGzipStart = (start: Uint8Array): boolean =>
  start[0] === 0x1f && (start.length < 2 || start[1] === 0x8b);

/** Archives of up to this size, packed and plain, are inflated at once. */
const smallPackedBytes = 64 * 1024;
const smallPlainBytes = 1024 * 1024;
/** Bytes of a larger one that are inflated to see its beginning. */
const packedStartBytes = 6 * 1024;
const chunkBytes = 256 * 1024;
/** Plain files are read up to here for a checksum; beyond it the marks before and the bytes before the offset decide. */
const summedBytes = 16 * 1024 * 1024;
const compareBytes = 4096;
const cannotCompare = 'file cannot be compared';
/** Times per scan that a directory is listed again because files in it were renamed meanwhile. */
const lookupsLimit = 4;

interface Opened {
  readonly fd: number;
  /** While the file has this size and time. */
  size: number;
  mtimeNs: bigint;
  content?: Content | 'unfinished';
}

/** Inflates an open gzip file chunk by chunk. `isOpen` is asked before each read. */
export async function* inflated(disk: Disk, fd: number, isOpen: () => boolean): AsyncGenerator<Buffer> {
  const plain = createGunzip();
  let position = 0;
  const feed = () => {
    try {
      if (!isOpen()) throw new Error('closed meanwhile');
      const chunk = Buffer.allocUnsafe(smallPackedBytes);
      const length = disk.read(fd, chunk, 0, chunk.length, position);
      position += length;
      if (length === 0) plain.end();
      else plain.write(chunk.subarray(0, length), (failed) => failed || feed());
    } catch (thrown) {
      plain.destroy(thrown as Error);
    }
  };
  feed();
  yield* plain as AsyncIterable<Buffer>;
}

/** The whole archive if it is small; 'unfinished' if its end is missing, undefined if it is large. */
export function inflateSmall(disk: Disk, fd: number, size: number): Buffer | 'unfinished' | undefined {
  if (size > smallPackedBytes) return undefined;
  const packed = Buffer.allocUnsafe(size);
  const length = disk.read(fd, packed, 0, size, 0);
  try {
    return gunzipSync(packed.subarray(0, length), { maxOutputLength: smallPlainBytes });
  } catch (thrown) {
    return systemCode(thrown) === 'ERR_BUFFER_TOO_LARGE' ? undefined : 'unfinished';
  }
}

export function createContents({
  disk,
  problems,
  slices,
  openLimit,
}: {
  disk: Disk;
  problems: Problems;
  slices: Pick<Slices, 'spent' | 'turn'>;
  /** Files that are open at a time: what is open is not lost, and can be read, if it is deleted. */
  openLimit: number;
}): Contents {
  const opened = new Map<string, Opened>();
  const moved = new Map<string, Map<string, string>>();
  let lookups = lookupsLimit;
  const keyOf = ({ stat: { dev, ino } }: Seen) => `${dev}:${ino}`;

  const close = (key: string) => {
    const own = opened.get(key);
    opened.delete(key);
    if (own) disk.close(own.fd);
  };

  const makeRoom = () => {
    const [oldest] = opened.keys();
    if (opened.size >= openLimit && oldest !== undefined) close(oldest);
  };

  const readAt = (fd: number, length: number, position: number): Buffer => {
    const bytes = Buffer.allocUnsafe(Math.max(0, length));
    return length <= 0 ? bytes : bytes.subarray(0, disk.read(fd, bytes, 0, length, position));
  };

  const tailAt = (fd: number, length: number): string => {
    const kept = Math.min(tailBytes, length);
    return readAt(fd, kept, length - kept).toString('latin1');
  };

  const openAt = (path: string, { stat, paths }: Seen): Opened | undefined => {
    const fd = disk.open(path);
    let isIt = false;
    try {
      const { dev, ino, size } = disk.fstat(fd);
      // Under a name that was not listed, a smaller file is one that was given the inode meanwhile.
      isIt = dev === stat.dev && ino === stat.ino && (size >= stat.size || paths.includes(path));
    } finally {
      if (!isIt) disk.close(fd);
    }
    return isIt ? { fd, size: -1, mtimeNs: 0n } : undefined;
  };

  /** Where the files of a directory are now, by inode. */
  const indexOf = (directory: string): Map<string, string> => {
    const places = new Map<string, string>();
    for (const { name, kind } of disk.list(directory)) {
      const stat = kind === 'file' ? disk.stat(`${directory}/${name}`) : undefined;
      if (stat) places.set(`${stat.dev}:${stat.ino}`, `${directory}/${name}`);
    }
    return places;
  };

  /** The names of the file, and the one that a rotation has given it since the scan listed it. */
  function* pathsOf(file: Seen): Generator<string> {
    yield* file.paths;
    const directory = dirname(file.paths[0]!);
    const before = moved.get(directory)?.get(keyOf(file));
    if (before !== undefined) yield before;
    if (lookups-- <= 0) return;
    try {
      moved.set(directory, indexOf(directory));
    } catch {
      // The next scan reports it.
    }
    const now = moved.get(directory)?.get(keyOf(file));
    if (now !== undefined && now !== before) yield now;
  }

  const open = (file: Seen): Opened | 'moved' | 'denied' => {
    const known = opened.get(keyOf(file));
    if (known) return known;
    let isDenied = false;
    for (const path of pathsOf(file)) {
      // An inode that was given to another file meanwhile.
      if (!file.paths.includes(path) && !isSameLog(basename(path), basename(file.paths[0]!))) continue;
      try {
        makeRoom();
        const own = openAt(path, file);
        if (own === undefined) continue;
        opened.set(keyOf(file), own);
        problems.resolve(path, cannotCompare);
        return own;
      } catch (thrown) {
        if (saysAbsent(thrown)) continue;
        isDenied = true;
        problems.report(path, cannotCompare, thrown, 'debug');
      }
    }
    return isDenied ? 'denied' : 'moved';
  };

  /** The descriptor of a content that may have been closed for others. */
  const reopen = (file: Seen): number | undefined => {
    const own = open(file);
    return typeof own === 'string' ? undefined : own.fd;
  };

  const plain = (file: Seen, size: number, start: Buffer): Content => {
    let at = 0;
    let sum = 0;
    return {
      size,
      start,
      isGzip: false,
      async prefix(length) {
        if (length <= start.length) return prefixOf(start, length);
        if (length > summedBytes) {
          const fd = reopen(file);
          return fd === undefined ? undefined : { tail: tailAt(fd, length) };
        }
        if (length < at) [at, sum] = [0, 0];
        while (at < length) {
          const fd = reopen(file);
          const bytes =
            fd === undefined ? start.subarray(0, 0) : readAt(fd, Math.min(chunkBytes, length - at), at);
          if (bytes.length === 0) return undefined;
          sum = crc32(bytes, sum);
          at += bytes.length;
          if (at < length && slices.spent()) await slices.turn();
        }
        const fd = reopen(file);
        if (fd === undefined) return undefined;
        return { sum, tail: tailAt(fd, length) };
      },
    };
  };

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

  /** Inflates a file up to a plain length, in bounded memory. */
  const inflatedPrefix = async (file: Seen, length: number) => {
    const fd = reopen(file);
    if (fd === undefined) return undefined;
    let at = 0;
    let sum = 0;
    let tail = '';
    try {
      for await (const chunk of inflated(disk, fd, () => opened.get(keyOf(file))?.fd === fd)) {
        const bytes = chunk.subarray(0, length - at);
        sum = crc32(bytes, sum);
        at += bytes.length;
        tail = Buffer.from(
          (tail + bytes.subarray(-tailBytes).toString('latin1')).slice(-tailBytes),
          'latin1',
        ).toString('latin1');
        if (at >= length) return { sum, tail };
        if (slices.spent()) await slices.turn();
      }
    } catch (thrown) {
      problems.report(file.paths[0]!, cannotCompare, thrown, 'debug');
    }
    return undefined;
  };

  /** A large archive tells its size and its checksum in its last bytes; they are those of its last member. */
  const large = (file: Seen, fd: number, packedSize: number): Content | 'unfinished' => {
    const trailer = readAt(fd, 8, packedSize - 8);
    let start: Buffer;
    try {
      const packed = readAt(fd, Math.min(packedSize, packedStartBytes), 0);
      start = gunzipSync(packed, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, headBytes);
    } catch {
      return 'unfinished';
    }
    const size = trailer.readUInt32LE(4);
    if (size < start.length) return 'unfinished';
    return {
      size,
      start,
      isGzip: true,
      async prefix(length) {
        if (length === size) return { sum: trailer.readUInt32LE(0) };
        return length <= start.length ? prefixOf(start, length) : inflatedPrefix(file, length);
      },
    };
  };

  const read = (file: Seen, own: Opened, size: number): Content | 'unfinished' => {
    const start = readAt(own.fd, Math.min(size, headBytes), 0);
    if (!isGzipStart(start)) return plain(file, size, start);
    const small = inflateSmall(disk, own.fd, size);
    if (small === undefined) return large(file, own.fd, size);
    return small === 'unfinished' || small.length === 0 ? 'unfinished' : whole(small);
  };

  return {
    of(file) {
      const own = open(file);
      if (typeof own === 'string') return own;
      try {
        const { size, mtimeNs } = disk.fstat(own.fd);
        if (own.content === undefined || own.size !== size || own.mtimeNs !== mtimeNs)
          Object.assign(own, { size, mtimeNs, content: read(file, own, size) });
        return own.content!;
      } catch (thrown) {
        if (systemCode(thrown) === undefined) throw thrown;
        problems.report(file.paths[0]!, cannotCompare, thrown, 'debug');
        return 'denied';
      }
    },
    isPrefixOf(file, fd) {
      const own = open(file);
      if (typeof own === 'string') return undefined;
      const { size } = disk.fstat(own.fd);
      const length = Math.min(size, compareBytes);
      const isSame = (position: number) => {
        const bytes = readAt(own.fd, length, position);
        return bytes.length === length && readAt(fd, length, position).equals(bytes);
      };
      return size <= disk.fstat(fd).size && isSame(0) && isSame(size - length);
    },
    sumOf(fd, size) {
      let sum = 0;
      for (let at = 0; at < size; ) {
        const bytes = readAt(fd, Math.min(chunkBytes, size - at), at);
        if (bytes.length === 0) break;
        sum = crc32(bytes, sum);
        at += bytes.length;
      }
      return sum;
    },
    adopt(file, fd) {
      close(keyOf(file));
      makeRoom();
      opened.set(keyOf(file), { fd, size: -1, mtimeNs: 0n });
    },
    take(file) {
      const own = opened.get(keyOf(file));
      opened.delete(keyOf(file));
      return own?.fd;
    },
    release() {
      for (const key of [...opened.keys()]) close(key);
      moved.clear();
      lookups = lookupsLimit;
    },
  };
}
