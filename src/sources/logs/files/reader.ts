import { crc32 } from 'node:zlib';
import { AgentError, systemCode } from '../../../core/errors.ts';
import type { SkipReason } from '../../../core/reasons.ts';
import type { LineSink, OpenSink } from '../sink.ts';
import type { Disk } from './disk.ts';
import {
  growHead,
  growTail,
  headAgrees,
  headBytes,
  headCovers,
  headGrows,
  tailBytes,
} from './fingerprint.ts';
import type { OpenFiles } from './open-files.ts';
import type { Problems } from './problems.ts';
import { isBarelyKnown, isUnread, noBytes, restKeptBytes, type TrackedFile } from './tracked-file.ts';

/** Hands a file's bytes to its sink; what is counted and the offset move in the same step. */
export interface Sinks {
  /** Presents `bytes[start, end)`, which begin at the file's offset; returns how many were taken. */
  write(file: TrackedFile, bytes: Buffer, start: number, end: number): number;
  /** The unfinished line is a line: nothing follows it any more. */
  finish(file: TrackedFile): void;
  /** The file lost its unfinished line and no more: the line counts, the file goes on where it began. */
  cut(file: TrackedFile): void;
  skip(file: TrackedFile, reason: SkipReason, bytes: number): void;
  /** Closes the sink; the next one gets its state. */
  reopen(file: TrackedFile): void;
}

export function createSinks(openSink: () => OpenSink): Sinks {
  const sinkOf = (file: TrackedFile): LineSink => {
    file.sink ??= openSink()({ path: file.path, claimants: file.claimants, state: file.sinkState });
    file.sinkState = undefined;
    return file.sink;
  };

  const keepRest = (file: TrackedFile, bytes: Buffer, start: number, end: number) => {
    file.restBytes = end - start;
    file.rest =
      file.restBytes > 0 && file.restBytes <= restKeptBytes
        ? Buffer.from(bytes.subarray(start, end))
        : noBytes;
  };

  const moveOn = (file: TrackedFile, bytes: Buffer, start: number, end: number) => {
    const { head, tail } = file.fingerprint;
    file.fingerprint = { head, tail: growTail(tail, bytes, start, end) };
    file.offset += end - start;
  };

  return {
    write(file, bytes, start, end) {
      const taken = sinkOf(file).write(bytes, start, end) - start;
      if (taken > 0) moveOn(file, bytes, start, start + taken);
      keepRest(file, bytes, start + taken, end);
      file.record = undefined;
      return taken;
    },
    finish(file) {
      const { rest } = file;
      if (file.sink || file.sinkState || rest.length > 0) sinkOf(file).finish(rest, 0, rest.length);
      if (rest.length > 0) {
        moveOn(file, rest, 0, rest.length);
        file.restBytes -= rest.length;
        file.rest = noBytes;
      }
      file.sink = undefined;
      file.record = undefined;
    },
    cut(file) {
      const { rest } = file;
      if (rest.length > 0) sinkOf(file).finish(rest, 0, rest.length);
      file.size -= rest.length;
      file.sink = undefined;
      file.restBytes = 0;
      file.rest = noBytes;
      file.record = undefined;
    },
    skip(file, reason, bytes) {
      if (bytes > 0) sinkOf(file).skip(reason, bytes);
      file.record = undefined;
    },
    reopen(file) {
      file.sinkState = file.sink ? file.sink.state() : file.sinkState;
      file.sink = undefined;
      file.record = undefined;
    },
  };
}

/** The result of one read. 'changed': the bytes before the offset are not those that were read there. */
export type Turn = 'more' | 'end' | 'changed' | 'absent';

export interface Reader {
  /** Reads and counts one chunk; `pass` numbers the pass, in which a file's beginning is checked once. */
  turn(file: TrackedFile, pass: number): Turn;
  /**
   * Whether the file still has the bytes that were read of it; undefined if it cannot be read now. `wasOpen`: it was open
   * before the comparison, so that its inode is still its own.
   */
  isIntact(file: TrackedFile, wasOpen: boolean): boolean | undefined;
  /** Hands the sink the whole unfinished line as the file's last one. */
  finish(file: TrackedFile): void;
  /** Takes the fingerprint of a beginning that was not read yet. */
  learn(file: TrackedFile): void;
  /**
   * Puts a new file at its end, before a line that is not finished yet; what is passed over is counted. A file that cannot
   * be opened yet is passed over as long as it is.
   */
  startAtEnd(file: TrackedFile): void;
}

interface ReaderDeps {
  disk: Disk;
  openFiles: OpenFiles;
  sinks: Sinks;
  problems: Problems;
}

const chunkBytes = 256 * 1024;
/** Holds the longest line that a sink may ask to see whole, and a chunk. */
const bufferLimit = 1024 * 1024 + chunkBytes;
/** How far back from the end the beginning of an unfinished line is looked for. */
const lineLimit = 1024 * 1024;
const newline = 10;

/** All files share one buffer. Each read begins with the bytes before the offset, which verify the file. */
export function createReader({ disk, openFiles, sinks, problems }: ReaderDeps): Reader {
  let buffer = Buffer.allocUnsafe(tailBytes + chunkBytes);
  const start = Buffer.allocUnsafe(headBytes);

  /** Reads the bytes before the offset if only their sum is known; false if they are others. */
  const completeTail = (fd: number, file: TrackedFile): boolean => {
    const { tailSum, offset, fingerprint } = file;
    if (tailSum === undefined) return true;
    const tail = Buffer.allocUnsafeSlow(tailSum.length);
    const length = disk.read(fd, tail, 0, tail.length, offset - tail.length);
    if (length < tail.length || crc32(tail) !== tailSum.sum) return false;
    Object.assign(file, { tailSum: undefined, fingerprint: { head: fingerprint.head, tail } });
    return true;
  };

  const readFrom = (fd: number, file: TrackedFile): number => {
    const { tail } = file.fingerprint;
    let filled = 0;
    for (;;) {
      const read = disk.read(fd, buffer, filled, buffer.length - filled, file.offset - tail.length + filled);
      filled += read;
      if (read === 0 || filled === buffer.length || filled >= tail.length + file.restBytes) return filled;
    }
  };

  const startAgrees = (
    fd: number,
    { offset, fingerprint: { head, tail } }: TrackedFile,
    filled: number,
  ): boolean => {
    if (head.length === 0 || (offset > 0 && offset <= tail.length)) return true;
    if (offset === 0) return headAgrees(head, buffer.subarray(0, filled)) ?? false;
    const length = disk.read(fd, start, 0, headBytes, 0);
    return headAgrees(head, start.subarray(0, length)) ?? false;
  };

  const restAgrees = ({ fingerprint, rest, restBytes }: TrackedFile, filled: number) => {
    const from = fingerprint.tail.length;
    if (filled < Math.min(from + restBytes, buffer.length)) return false;
    return rest.length === 0 || rest.compare(buffer, from, from + rest.length) === 0;
  };

  /** Compares what was read into the buffer, and the file's beginning once per pass, with the fingerprint. */
  const compare = (fd: number, file: TrackedFile, filled: number, pass: number) => {
    const { tail } = file.fingerprint;
    if (filled < tail.length || tail.compare(buffer, 0, tail.length) !== 0) return 'changed';
    if (file.checkedBy !== pass && !startAgrees(fd, file, filled)) return 'changed';
    if (restAgrees(file, filled)) return 'same';
    return file.offset === 0 ? 'changed' : 'cut';
  };

  /**
   * Extends the fingerprint of the beginning. The file may have been rewritten since it was read: what is known already must
   * be there.
   */
  const growFingerprint = (fd: number, file: TrackedFile, known: number) => {
    const { head, tail } = file.fingerprint;
    if (!headGrows(head, known)) return;
    const now = start.subarray(0, disk.read(fd, start, 0, headBytes, 0));
    if (file.offset === 0 && !now.subarray(0, file.rest.length).equals(file.rest)) return;
    // If it was truncated since its size was looked up, the beginning is that of the next generation, which is smaller.
    if (head.length === 0) file.nowSize = Math.min(file.nowSize, disk.fstat(fd).size);
    if (headAgrees(head, now) ?? head.length === 0)
      file.fingerprint = { head: growHead(head, now, known), tail };
  };

  /**
   * The file's first bytes, if its fingerprint is to grow by what was just read. They are read before anything counts, so
   * that no line counts whose file could not be found again.
   */
  const beginning = (fd: number, { fingerprint, offset }: TrackedFile, filled: number) => {
    const { head, tail } = fingerprint;
    if (!headGrows(head, offset + filled - tail.length)) return undefined;
    // What was read begins with the first byte. By now the file may be truncated.
    if (offset === tail.length) return buffer.subarray(0, Math.min(filled, headBytes));
    if (head.length === 0) return undefined;
    const begin = start.subarray(0, disk.read(fd, start, 0, headBytes, 0));
    return begin.length >= headCovers(head) && headAgrees(head, begin) ? begin : 'changed';
  };

  /** Counts as skipped what a file lost that is shorter than it was and still has all counted bytes. */
  const noteLoss = (file: TrackedFile) => {
    const readTo = file.offset + file.restBytes;
    if (file.nowSize < file.size && file.nowSize >= readTo) {
      sinks.skip(file, 'truncated', file.size - file.nowSize);
      file.size = file.nowSize;
    }
  };

  /**
   * The read ended before the size that was looked up before it: the file was truncated in between. False if it may be
   * another one with the same beginning: its beginning was known and nothing was read of it, or it was not open all the time.
   */
  const noteShrinking = (file: TrackedFile, filled: number, wasOpen: boolean): boolean => {
    const { head, tail } = file.fingerprint;
    const end = file.offset + filled - tail.length;
    if (filled === buffer.length || end >= file.nowSize) return true;
    const isUnread = file.offset + file.restBytes === 0;
    if (!wasOpen || (isUnread && head.length > 0)) return false;
    if (!isUnread) file.size = Math.max(file.size, file.nowSize);
    file.nowSize = end;
    return true;
  };

  const makeRoom = (file: TrackedFile) => {
    if (buffer.length >= tailBytes + bufferLimit) {
      const what = 'the line sink takes nothing of a full buffer';
      throw new AgentError('internal', { where: file.real, what, got: buffer.length });
    }
    buffer = Buffer.allocUnsafe(tailBytes + Math.min(bufferLimit, 2 * (buffer.length - tailBytes)));
  };

  const take = (fd: number, file: TrackedFile, pass: number, wasOpen: boolean): Turn => {
    if (!completeTail(fd, file)) return 'changed';
    const filled = readFrom(fd, file);
    const state = compare(fd, file, filled, pass);
    if (state === 'changed') return 'changed';
    const begin = beginning(fd, file, filled);
    if (begin === 'changed' || !noteShrinking(file, filled, wasOpen)) return 'changed';
    file.checkedBy = pass;
    file.isVerified = true;
    file.isOwnInode = true;
    if (state === 'cut') sinks.cut(file);
    noteLoss(file);
    const from = file.fingerprint.tail.length;
    const isFull = filled === buffer.length;
    file.size = Math.max(file.size, file.nowSize, file.offset + filled - from);
    file.mtimeNs = file.nowMtimeNs;
    file.record = undefined;
    if (filled - from <= file.restBytes && !isFull) return 'end';
    const taken = sinks.write(file, buffer, from, filled);
    if (begin) {
      const { head, tail } = file.fingerprint;
      file.fingerprint = { head: growHead(head, begin, file.offset + file.restBytes), tail };
    }
    if (taken === 0 && isFull) makeRoom(file);
    return isFull && file.offset + file.restBytes < file.nowSize ? 'more' : 'end';
  };

  /** Runs `call` on the open file; a stale handle is closed, to be opened anew in the next pass. */
  const onOpen = <T>(file: TrackedFile, call: (fd: number) => T): T | undefined => {
    const fd = openFiles.open(file);
    if (fd === undefined) return undefined;
    try {
      const result = call(fd);
      problems.resolve(file.real, 'file cannot be read');
      return result;
    } catch (thrown) {
      if (systemCode(thrown) === undefined) throw thrown;
      if (systemCode(thrown) === 'ESTALE') openFiles.close(file);
      problems.report(file.real, 'file cannot be read', thrown);
      return undefined;
    }
  };

  const lineStart = (fd: number, size: number): number => {
    const chunk = Buffer.allocUnsafe(Math.min(size, 64 * 1024));
    for (let end = size; end > 0 && size - end < lineLimit; end -= chunk.length) {
      const from = Math.max(0, end - chunk.length);
      disk.read(fd, chunk, 0, end - from, from);
      const at = chunk.subarray(0, end - from).lastIndexOf(newline);
      if (at >= 0) return from + at + 1;
    }
    return size <= lineLimit ? 0 : size;
  };

  return {
    turn(file, pass) {
      const wasOpen = file.fd !== undefined;
      const mayBeAnother = !wasOpen && file.offset === 0 && file.real !== file.home;
      return (
        onOpen(file, (fd) => {
          if (mayBeAnother && isBarelyKnown(file, disk.fstat(fd))) return 'changed';
          return take(fd, file, pass, wasOpen);
        }) ?? 'absent'
      );
    },
    isIntact(file, wasOpen) {
      return onOpen(file, (fd) => {
        const { size, mtimeNs } = disk.fstat(fd);
        const hasShrunk = size < file.nowSize;
        if (hasShrunk) file.size = Math.max(file.size, file.nowSize);
        Object.assign(file, { nowSize: size, nowMtimeNs: mtimeNs });
        if (!completeTail(fd, file)) return false;
        const state = compare(fd, file, readFrom(fd, file), -1);
        // A file that was not open all the time and lost bytes may be another one with the same beginning.
        if (state === 'changed' || (!wasOpen && (state === 'cut' || hasShrunk))) return false;
        // A size that is recorded without a beginning could not be found again.
        if (isUnread(file)) growFingerprint(fd, file, size);
        file.isOwnInode = true;
        return true;
      });
    },
    finish(file) {
      if (file.rest.length < file.restBytes) {
        const whole = Buffer.allocUnsafe(file.restBytes);
        const read = onOpen(file, (fd) => disk.read(fd, whole, 0, whole.length, file.offset)) ?? 0;
        file.rest = whole.subarray(0, read);
      }
      sinks.finish(file);
    },
    learn(file) {
      onOpen(file, (fd) => growFingerprint(fd, file, file.nowSize));
    },
    startAtEnd(file) {
      const size = file.nowSize;
      file.offset = size;
      onOpen(file, (fd) => {
        file.offset = lineStart(fd, size);
        const tail = Buffer.allocUnsafeSlow(Math.min(tailBytes, file.offset));
        const length = disk.read(fd, start, 0, Math.min(headBytes, file.offset), 0);
        disk.read(fd, tail, 0, tail.length, file.offset - tail.length);
        file.fingerprint = { head: growHead([], start.subarray(0, length), length), tail };
      });
      file.size = size;
      sinks.skip(file, 'start_at_end', file.offset);
    },
  };
}
