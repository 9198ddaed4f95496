import { basename, dirname } from 'node:path';
import { constants, crc32, gunzipSync } from 'node:zlib';
import { systemCode } from '../../../core/errors.ts';
import { type Disk, type FileStat, saysAbsent } from './disk.ts';
import type { Problems } from './problems.ts';
import { isCompressed, isGzip, isSameLog } from './rotated-names.ts';

/** Bytes before the offset that identify a file. */
export const tailBytes = 64;
/** Fewer bytes than these at a file's beginning have no checksum. */
export const checkedBytes = 16;
/** Lengths of beginnings with a checksum, as far as the file has grown. */
const headLengths: readonly number[] = [
  checkedBytes,
  ...Array.from({ length: 7 }, (_, i) => 32 * (i + 1)),
  ...Array.from({ length: 16 }, (_, i) => 256 * (i + 1)),
];
export const headSums = headLengths.length;
/** Sums that versions 1 and 2 of the snapshot have in common with these: the first three. */
export const headSumsInCommon = 3;
export const headBytes = 4096;

/**
 * What the bytes before a file's offset look like. A file is identified by device, inode and this: inodes are reused,
 * beginnings repeat (banners), and files are rewritten in place.
 */
export interface Fingerprint {
  /** CRC-32 of the first 16, 32, 64, 96, … 256, 512, 768, … 4096 bytes. */
  readonly head: readonly number[];
  /** The last up to 64 bytes before the offset. */
  readonly tail: Buffer;
}

const noContent = Buffer.alloc(0);

export const noFingerprint: Fingerprint = { head: [], tail: noContent };

/** Bytes of the beginning that the head covers. */
export const headCovers = (head: readonly number[]): number => headLengths[head.length - 1] ?? 0;

/** Whether the head can still grow once `length` bytes of the file are known. */
export const headGrows = (head: readonly number[], length: number): boolean =>
  head.length < headLengths.length && headLengths[head.length]! <= length;

/** The head over `start`, the file's first bytes, of which those up to `length` are known to stay. */
export function growHead(head: readonly number[], start: Buffer, length: number): readonly number[] {
  const grown = [...head];
  let from = grown.length > 0 ? headLengths[grown.length - 1]! : 0;
  let sum = grown.at(-1) ?? 0;
  for (const to of headLengths.slice(grown.length)) {
    if (to > length || to > start.length) break;
    sum = crc32(start.subarray(from, to), sum);
    grown.push(sum);
    from = to;
  }
  return grown;
}

/** Whether the head agrees with a file's first bytes as far as both reach; undefined if they share no length. */
export function headAgrees(head: readonly number[], start: Buffer): boolean | undefined {
  for (let i = head.length - 1; i >= 0; i--) {
    const length = headLengths[i]!;
    if (length <= start.length) return crc32(start.subarray(0, length)) === head[i];
  }
  return undefined;
}

/** The tail once `bytes[start, end)` have followed it; in memory of its own, for it outlives what it is cut from. */
export function growTail(tail: Buffer, bytes: Buffer, start: number, end: number): Buffer {
  const kept = Math.max(0, Math.min(tail.length, tailBytes - (end - start)));
  const from = Math.max(start, end - tailBytes);
  const grown = Buffer.allocUnsafeSlow(kept + end - from);
  grown.set(tail.subarray(tail.length - kept));
  grown.set(bytes.subarray(from, end), kept);
  return grown;
}

/** What is known of a file's content. */
export interface KnownContent {
  readonly head: readonly number[];
  /** First byte that was not counted. */
  readonly offset: number;
  /** The bytes before the offset: their number, up to 64, and their CRC-32. */
  readonly tailLength: number;
  readonly tailSum: number;
  /** Those bytes themselves, where they are kept. */
  readonly tail?: Buffer;
  /** Bytes after the offset that were seen: an unfinished line. */
  readonly rest: Buffer;
}

/** What a file on disk holds, as far as comparisons need it. */
export interface Content {
  /** Bytes of plain text: the file's size, or what a gzip trailer says. 0 for a gzip file that is known to be unfinished. */
  readonly size: number;
  /** The first 4096 bytes of plain text; fewer if the file has fewer or no more could be inflated. */
  readonly start: Buffer;
  readonly isGzip: boolean;
  /** CRC-32 of the plain bytes: a plain file is read for it, a gzip file has it in its trailer. */
  sum(): number | undefined;
  /** Plain bytes at a position; undefined beyond the part of a gzip file that was inflated. */
  at(position: number, length: number): Buffer | undefined;
}

/**
 * How a file relates to what is known. 'whole': it has the known bytes, and maybe more. 'short': it ends before the offset
 * and begins the same. 'cut': it has the counted bytes, but not the unfinished line. 'perhaps': a gzip file that begins the
 * same. 'none': it is another file.
 */
export type Likeness = 'whole' | 'short' | 'cut' | 'perhaps' | 'none';

/** Known bytes without which content alone identifies nothing. */
export const identifyingBytes = 32;

/** Archives of the beginning of a generation are not recognized below this size. */
const shortArchiveBytes = 64;

export function likeness(content: Content, known: KnownContent): Likeness {
  const sameStart = headAgrees(known.head, content.start);
  if (sameStart === false) return 'none';
  const { offset, tailLength, tailSum, rest } = known;
  // It ends before the first checksum of what is known.
  if (offset === 0 && sameStart === undefined && known.head.length > 0) {
    const begun = Math.min(rest.length, content.size);
    return begun > 0 && content.start.subarray(0, begun).equals(rest.subarray(0, begun)) ? 'short' : 'none';
  }
  if (content.size < offset) {
    if (content.size === 0) return 'none';
    const coversAll = offset === tailLength && known.tail?.subarray(0, content.size).equals(content.start);
    // A small archive is covered by few checksums: banners and timestamps are alike.
    const isTooSmall = content.isGzip && content.size < shortArchiveBytes;
    const coversStart = sameStart && !isTooSmall && !headGrows(known.head, content.start.length);
    return coversStart || coversAll ? 'short' : 'none';
  }
  const before = content.at(offset - tailLength, tailLength);
  if (content.isGzip && before === undefined) return sameStart ? 'perhaps' : 'none';
  if (before === undefined || before.length < tailLength || crc32(before) !== tailSum) return 'none';
  const after = content.at(offset, Math.min(rest.length, content.size - offset));
  if (after && !after.equals(rest.subarray(0, after.length))) return offset > 0 ? 'cut' : 'none';
  if (offset === 0 && rest.length === 0 && sameStart === undefined) return 'none';
  return 'whole';
}

const compareBytes = 4096;

/** Whether the first `size` bytes of two files are the same: their beginning and their end are compared. */
function beginAlike(size: number, a: Content['at'], b: Content['at']): boolean {
  const length = Math.min(size, compareBytes);
  const same = (position: number) => {
    const bytes = a(position, length);
    return bytes?.length === length && b(position, length)?.equals(bytes) === true;
  };
  return same(0) && same(size - length);
}

/** Whether a file holds the first bytes of another one, or all of them. */
export const isBeginningOf = (content: Content, other: Content): boolean =>
  content.size <= other.size && beginAlike(content.size, content.at, other.at);

/** Bytes of a gzip file that are inflated to see its beginning: at most 6 MiB come of them. */
const packedBytes = 6 * 1024;
const sumBytes = 256 * 1024;
const cannotCompare = 'file cannot be compared';
/** Files that are open for a comparison at a time. */
const openLimit = 64;
/** Times per scan that a directory is listed again because files in it were renamed meanwhile. */
const lookupsLimit = 4;

interface Opened {
  readonly fd: number;
  archive?: { readonly packedBytes: number; readonly mtimeNs: bigint; readonly content: Content };
}

/** A file as a scan saw it, under each of its names. */
export interface Seen {
  readonly stat: FileStat;
  readonly paths: readonly string[];
}

/**
 * Reads files that are not followed, to compare them. A file is opened once per scan and must have the inode that the scan
 * saw: while a rotation renames files, a path soon leads to another one.
 */
export interface Contents {
  /** 'moved': another file, or none, is under its names by now. */
  open(file: Seen): 'open' | 'moved' | 'denied';
  /** Calls with what the file holds now; undefined unless it can be opened. */
  of<T>(file: Seen, call: (content: Content) => T): T | undefined;
  /** Whether the file's first `size` bytes are those of an open one: their beginning and their end are compared. */
  isPrefixOf(file: Seen, size: number, fd: number): boolean;
  beginsWith(fd: number, start: Buffer): boolean;
  /** CRC-32 of an open file's first `size` bytes. */
  sumOf(fd: number, size: number): number;
  /** Hands the descriptor over to the caller, who closes it. */
  take(file: Seen): number | undefined;
  /** Closes everything. */
  release(): void;
}

export function createContents({ disk, problems }: { disk: Disk; problems: Problems }): Contents {
  const opened = new Map<string, Opened>();
  const moved = new Map<string, Map<string, string>>();
  let lookups = lookupsLimit;
  const keyOf = ({ stat: { dev, ino } }: Seen) => `${dev}:${ino}`;

  const readAt = (fd: number, length: number, position: number): Buffer => {
    if (length <= 0) return noContent;
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, disk.read(fd, bytes, 0, length, position));
  };

  const openAt = (path: string, { stat }: Seen): number | undefined => {
    const fd = disk.open(path);
    let isSame = false;
    try {
      const now = disk.fstat(fd);
      isSame = now.dev === stat.dev && now.ino === stat.ino;
    } finally {
      if (!isSame) disk.close(fd);
    }
    return isSame ? fd : undefined;
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
    const known = moved.get(directory)?.get(keyOf(file));
    if (known !== undefined) yield known;
    if (lookups-- <= 0) return;
    try {
      moved.set(directory, indexOf(directory));
    } catch {
      // The next scan reports it.
    }
    const now = moved.get(directory)?.get(keyOf(file));
    if (now !== undefined && now !== known) yield now;
  }

  const open = (file: Seen): 'open' | 'moved' | 'denied' => {
    if (opened.has(keyOf(file))) return 'open';
    let isDenied = false;
    for (const path of pathsOf(file)) {
      // An inode that was given to another file meanwhile.
      if (isCompressed(path) !== isCompressed(file.paths[0]!)) continue;
      if (!file.paths.includes(path) && !isSameLog(basename(path), basename(file.paths[0]!))) continue;
      try {
        const fd = openAt(path, file);
        if (fd === undefined) continue;
        for (const [key, other] of opened) {
          if (opened.size < openLimit) break;
          disk.close(other.fd);
          opened.delete(key);
        }
        opened.set(keyOf(file), { fd });
        problems.resolve(path, cannotCompare);
        return 'open';
      } catch (thrown) {
        if (saysAbsent(thrown)) continue;
        isDenied = true;
        problems.report(path, cannotCompare, thrown, 'debug');
      }
    }
    return isDenied ? 'denied' : 'moved';
  };

  const sumOf = (fd: number, size: number): number => {
    let sum = 0;
    for (let at = 0; at < size; ) {
      const bytes = readAt(fd, Math.min(sumBytes, size - at), at);
      if (bytes.length === 0) break;
      sum = crc32(bytes, sum);
      at += bytes.length;
    }
    return sum;
  };

  const plain = (fd: number, size: number): Content => ({
    size,
    sum: () => sumOf(fd, size),
    start: readAt(fd, Math.min(size, headBytes), 0),
    isGzip: false,
    at: (position, length) => readAt(fd, length, position),
  });

  const inflate = (packed: Buffer, isWhole: boolean): Buffer | undefined => {
    if (packed[0] !== 0x1f || packed[1] !== 0x8b) return undefined;
    try {
      return isWhole ? gunzipSync(packed) : gunzipSync(packed, { finishFlush: constants.Z_SYNC_FLUSH });
    } catch {
      return undefined;
    }
  };

  const gzip = (fd: number, size: number): Content => {
    const packed = readAt(fd, Math.min(size, packedBytes), 0);
    const isSmall = size <= packedBytes;
    const whole = isSmall ? inflate(packed, true) : undefined;
    const start = whole ?? inflate(packed, false) ?? noContent;
    const trailer = isSmall ? noContent : readAt(fd, 8, size - 8);
    return {
      size: whole?.length ?? (trailer.length === 8 ? trailer.readUInt32LE(4) : 0),
      sum: () => (whole ? crc32(whole) : trailer.length === 8 ? trailer.readUInt32LE(0) : undefined),
      start: start.subarray(0, headBytes),
      isGzip: true,
      at: (position, length) =>
        position + length <= start.length ? start.subarray(position, position + length) : undefined,
    };
  };

  /** An archive is inflated once per scan, unless it changes. */
  const archiveOf = (own: Opened): Content => {
    const { size, mtimeNs } = disk.fstat(own.fd);
    if (own.archive?.packedBytes !== size || own.archive.mtimeNs !== mtimeNs)
      own.archive = { packedBytes: size, mtimeNs, content: gzip(own.fd, size) };
    return own.archive.content;
  };

  const unreadable: Content = {
    size: 0,
    start: noContent,
    isGzip: true,
    sum: () => undefined,
    at: () => undefined,
  };

  return {
    open,
    of(file, call) {
      if (open(file) !== 'open') return undefined;
      const own = opened.get(keyOf(file))!;
      const [path] = file.paths as [string];
      try {
        if (!isCompressed(path)) return call(plain(own.fd, disk.fstat(own.fd).size));
        return call(isGzip(path) ? archiveOf(own) : unreadable);
      } catch (thrown) {
        if (systemCode(thrown) === undefined) throw thrown;
        problems.report(path, 'file cannot be read', thrown);
        return undefined;
      }
    },
    isPrefixOf(file, size, fd) {
      if (open(file) !== 'open') return false;
      const own = opened.get(keyOf(file))!.fd;
      const at = (of: number) => (position: number, length: number) => readAt(of, length, position);
      return beginAlike(size, at(own), at(fd));
    },
    beginsWith: (fd, start) => readAt(fd, start.length, 0).equals(start),
    sumOf,
    take(file) {
      const own = opened.get(keyOf(file));
      opened.delete(keyOf(file));
      return own?.fd;
    },
    release() {
      for (const { fd } of opened.values()) disk.close(fd);
      opened.clear();
      moved.clear();
      lookups = lookupsLimit;
    },
  };
}

const isoTime = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?/;
const epochTime = /"(?:ts|time|timestamp)":\s*(\d{10,13}(?:\.\d+)?)/;

/** The time of the first entry in a file's beginning, in milliseconds, if it is written in a usual form. */
export function firstEntryMs(start: Buffer): number | undefined {
  const text = start.toString('latin1');
  const iso = isoTime.exec(text)?.[0];
  if (iso) {
    const ms = Date.parse(iso.replace(' ', 'T').replace(',', '.'));
    return Number.isNaN(ms) ? undefined : ms;
  }
  const epoch = epochTime.exec(text)?.[1];
  if (!epoch) return undefined;
  const value = Number(epoch);
  return value < 1e11 ? value * 1000 : value;
}
