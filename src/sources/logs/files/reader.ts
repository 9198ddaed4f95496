import { AgentError, systemCode } from '../../../core/errors.ts';
import type { Clock } from '../../../core/ports.ts';
import type { Disk, Problems } from '../discovery/disk.ts';
import { covered, headBytes, learn, marksAgree, tailBytes } from './chain.ts';
import { type Generation, isUnread, knownBytes } from './generation.ts';
import type { Generations } from './generations.ts';
import { createArchiveReader, isGzipStart, type Turn } from './gzip.ts';
import type { OpenFiles } from './open-files.ts';
import type { Sinks } from './sinks.ts';

export interface Reader {
  /** Reads and counts one chunk. The first turn of a pass checks the file's beginning, too. */
  turn(of: Generation, isFirst: boolean): Turn | Promise<Turn>;
  /**
   * Whether the file still has the bytes that were read from it; undefined if it cannot be read now. `wasOpen` says that the file
   * was open before the comparison, so that its inode is still its own.
   */
  isIntact(of: Generation, wasOpen: boolean): boolean | undefined;
  /** Hands the sink the whole unfinished line as the last line. */
  finish(of: Generation): void;
  /** Adds the marks of a beginning that was not read yet. */
  learn(of: Generation): void;
  /**
   * Sets the offset of a new file to its end, before a line that is not finished yet. What is passed over is counted. A file that
   * cannot be opened yet is passed over at the size that it has when it can be opened.
   */
  startAtEnd(of: Generation): void;
  close(of: Generation): void;
}

interface ReaderDeps {
  clock: Pick<Clock, 'monotonicMs'>;
  disk: Disk;
  generations: Generations;
  openFiles: OpenFiles;
  sinks: Sinks;
  problems: Problems;
}

const chunkBytes = 256 * 1024;
/** The target duration of a turn: nothing else runs in it. A line may open series, at fifty times its usual cost. */
const turnMs = 5;
/** A short chunk still holds the beginning of a file. */
const shortChunkBytes = 2 * headBytes;
/** The size of the buffer: the longest line that a sink may ask to see whole, and a chunk. */
const bufferLimit = 1024 * 1024 + chunkBytes;
/** How far back from the end the beginning of an unfinished line is looked for. */
const lineLimit = 1024 * 1024;
const newline = 10;

/**
 * The bytes of a turn, in one buffer for all files: first the bytes before the offset, which verify the file, then the bytes that
 * follow.
 */
function createTurnBuffer(disk: Disk) {
  let bytes = Buffer.allocUnsafe(tailBytes + chunkBytes);
  /** The number of bytes that a turn reads after the unfinished line. */
  let turnBytes = shortChunkBytes;
  const roomFor = ({ chain, restBytes }: Generation): number =>
    Math.min(bytes.length, chain.tail.length + restBytes + turnBytes);
  return {
    get bytes() {
      return bytes;
    },
    /** How much of the buffer a turn fills. */
    roomFor,
    /** Reads from the bytes before the offset on; returns how much of the buffer is filled. */
    fill(fd: number, of: Generation): number {
      const { offset, tail } = of.chain;
      const room = roomFor(of);
      let filled = 0;
      for (;;) {
        const read = disk.read(fd, bytes, filled, room - filled, offset - tail.length + filled);
        filled += read;
        if (read === 0 || filled === room || filled >= tail.length + of.restBytes) return filled;
      }
    },
    /** Adapts the size of the next turn to how long this turn took for `taken` bytes. */
    fit(taken: number, tookMs: number): void {
      const fittingBytes = Math.floor((taken * turnMs) / Math.max(tookMs, 0.001));
      turnBytes = Math.max(shortChunkBytes, Math.min(chunkBytes, 2 * turnBytes, fittingBytes));
    },
    /** Makes room for a longer line. Throws `internal` if the sink takes nothing of the longest line. */
    grow(path: string): void {
      if (bytes.length >= tailBytes + bufferLimit) {
        const what = 'the line sink takes nothing of a full buffer';
        throw new AgentError('internal', { where: path, what, got: bytes.length });
      }
      bytes = Buffer.allocUnsafe(tailBytes + Math.min(bufferLimit, 2 * (bytes.length - tailBytes)));
    },
  };
}

type TurnBuffer = ReturnType<typeof createTurnBuffer>;

/** Whether the beginning of a file agrees with its marks; `read` has the bytes of the file that were read into the buffer. */
function startAgrees({ chain }: Generation, read: Buffer, readStart: () => Buffer): boolean {
  const { marks, offset, tail } = chain;
  if (marks.length === 0 || (offset > 0 && offset <= tail.length)) return true;
  // If nothing of the file was counted, everything that is known must be there.
  if (offset === 0 && read.length < covered(chain)) return false;
  return marksAgree(chain, offset === 0 ? read : readStart()) ?? false;
}

/** Whether the unfinished line, after the tail in what was read, is still there. */
function restAgrees({ chain: { tail }, rest, restBytes }: Generation, read: Buffer, bufferBytes: number) {
  const from = tail.length;
  if (read.length < Math.min(from + restBytes, bufferBytes)) return false;
  return rest.length === 0 || rest.compare(read, from, from + rest.length) === 0;
}

/** The position after the last newline before `size`, where the unfinished line begins. */
function lineStart(disk: Disk, fd: number, size: number): number {
  const chunk = Buffer.allocUnsafe(Math.min(size, 64 * 1024));
  for (let end = size; end > 0 && size - end < lineLimit; end -= chunk.length) {
    const from = Math.max(0, end - chunk.length);
    disk.read(fd, chunk, 0, end - from, from);
    const at = chunk.subarray(0, end - from).lastIndexOf(newline);
    if (at >= 0) return from + at + 1;
  }
  return size <= lineLimit ? 0 : size;
}

/**
 * Returns a function that runs `call` on the open file of a generation. Its result is undefined if the file cannot be opened or
 * read. After a stale handle, the file is opened again once.
 */
function createCalls({ openFiles, problems }: Pick<ReaderDeps, 'openFiles' | 'problems'>) {
  const onOpen = <T>(of: Generation, call: (fd: number) => T, isAgain = false): T | undefined => {
    const { place } = of;
    const fd = place && openFiles.open(place);
    if (fd === undefined) return undefined;
    const { real } = place!;
    try {
      const result = call(fd);
      problems.resolve(real, 'file cannot be read');
      return result;
    } catch (thrown) {
      if (systemCode(thrown) === undefined) throw thrown;
      if (systemCode(thrown) === 'ESTALE') {
        openFiles.close(place!);
        if (!isAgain) return onOpen(of, call, true);
      }
      problems.report(real, 'file cannot be read', thrown);
      return undefined;
    }
  };
  return onOpen;
}

/** Compares files with what was read from them, and records what the comparison shows. */
function createVerifier({ disk, generations, sinks }: ReaderDeps, turnBuffer: TurnBuffer) {
  const start = Buffer.allocUnsafe(headBytes);
  const readStart = (fd: number) => start.subarray(0, disk.read(fd, start, 0, headBytes, 0));
  return {
    readStart,

    /** Compares what was read into the buffer, and at the first turn the file's beginning, with what was read before. */
    check(fd: number, of: Generation, filled: number, isFirst: boolean): 'same' | 'cut' | 'changed' {
      const { tail, offset } = of.chain;
      const read = turnBuffer.bytes.subarray(0, filled);
      if (filled < tail.length || read.toString('latin1', 0, tail.length) !== tail) return 'changed';
      if (isFirst && !startAgrees(of, read, () => readStart(fd))) return 'changed';
      if (restAgrees(of, read, turnBuffer.bytes.length)) return 'same';
      return offset === 0 ? 'changed' : 'cut';
    },

    /**
     * Marks the beginning of a file. The file may have been rewritten since it was read, so the marks that are known already must
     * agree.
     */
    learnFrom(fd: number, of: Generation): void {
      const { chain, rest } = of;
      // A file that was empty at first may turn out to be a copy of another file.
      if (covered(chain) >= headBytes || of.place?.isBlank) return;
      const now = readStart(fd);
      if (isUnread(of) && !now.subarray(0, rest.length).equals(rest.subarray(0, headBytes))) return;
      if (marksAgree(chain, now) === false || now.length < covered(chain)) return;
      // If the file was truncated since its size was looked up, the beginning belongs to the next generation, which is smaller.
      const { size } = disk.fstat(fd);
      if (of.place && (size > of.place.size || (size < of.place.size && chain.marks.length === 0)))
        generations.relocate(of, { size });
      const next = learn(chain, now);
      // The size was looked up before. If the file is rewritten later, this was the size of the present content.
      const told = next.marks.length > 0 ? Math.max(of.size, of.place?.size ?? 0) : of.size;
      if (next !== chain || told > of.size) generations.update(of, { chain: next, size: told });
    },

    /** Counts as skipped the bytes that a file lost: it is shorter than it was, and still has all counted bytes. */
    noteLoss(of: Generation): void {
      const { size } = of.place!;
      if (size < of.size && size >= of.chain.offset + of.restBytes) {
        sinks.skip(of, 'truncated', of.size - size);
        generations.update(of, { size });
      }
    },

    /**
     * Handles a read that ended before the size that was looked up before it: the file was truncated in between. False if the
     * file may be another file with the same beginning: its beginning was known and nothing was read from it, or it was not open
     * all the time.
     */
    noteShrinking(of: Generation, filled: number, wasOpen: boolean): boolean {
      const { marks, offset, tail } = of.chain;
      const end = offset + filled - tail.length;
      const { size } = of.place!;
      if (filled === turnBuffer.roomFor(of) || end >= size) return true;
      const isNew = offset + of.restBytes === 0;
      if (!wasOpen || (isNew && marks.length > 0)) return false;
      if (!isNew) generations.update(of, { size: Math.max(of.size, size) });
      generations.relocate(of, { size: end });
      return true;
    },
  };
}

export function createReader(deps: ReaderDeps): Reader {
  const { clock, disk, generations, sinks } = deps;
  const archives = createArchiveReader(deps);
  const turnBuffer = createTurnBuffer(disk);
  const { check, readStart, learnFrom, noteLoss, noteShrinking } = createVerifier(deps, turnBuffer);
  const onOpen = createCalls(deps);

  const take = (fd: number, of: Generation, isFirst: boolean, wasOpen: boolean): Turn => {
    const filled = turnBuffer.fill(fd, of);
    const { bytes } = turnBuffer;
    const state = check(fd, of, filled, isFirst);
    if (state === 'changed') return 'changed';
    // The file is an archive that was empty when it was looked at. It is identified anew.
    if (filled > 0 && of.chain.offset + of.restBytes === 0 && isGzipStart(bytes.subarray(0, filled)))
      return 'changed';
    const place = of.place!;
    const from = of.chain.tail.length;
    const isBeginning = of.chain.offset === from;
    const isFull = filled === turnBuffer.roomFor(of);
    if (!noteShrinking(of, filled, wasOpen)) return 'changed';
    place.isVerified = true;
    if (state === 'cut') sinks.cut(of);
    noteLoss(of);
    const end = of.chain.offset + filled - from;
    place.readMtimeNs = place.mtimeNs;
    generations.update(of, { size: Math.max(of.size, place.size, end) });
    if (filled - from <= of.restBytes && !isFull) return 'end';
    // The beginning is marked before anything counts, so that no line counts whose file could not be found again.
    if (isBeginning) generations.update(of, { chain: learn(of.chain, bytes.subarray(0, filled)) });
    const beganMs = clock.monotonicMs();
    const taken = sinks.write(of, bytes, from, filled);
    if (isFull) turnBuffer.fit(filled - from, clock.monotonicMs() - beganMs);
    if (taken === 0 && filled === bytes.length) turnBuffer.grow(place.real);
    return isFull && of.chain.offset + of.restBytes < place.size ? 'more' : 'end';
  };

  return {
    close: archives.close,
    turn(of, isFirst) {
      if (of.place?.isGzip) return archives.turn(of);
      const wasOpen = of.place?.fd !== undefined;
      return onOpen(of, (fd) => take(fd, of, isFirst, wasOpen)) ?? 'absent';
    },
    isIntact(of, wasOpen) {
      return onOpen(of, (fd) => {
        const { size, mtimeNs } = disk.fstat(fd);
        const before = of.place!.size;
        if (size < before) generations.update(of, { size: Math.max(of.size, before) });
        generations.relocate(of, { size, mtimeNs });
        const state = check(fd, of, turnBuffer.fill(fd, of), true);
        // If a file was not open all the time and lost bytes, it may be another file with the same beginning.
        if (state === 'changed' || (!wasOpen && (state === 'cut' || size < before))) return false;
        // The known bytes were there afterwards, so the whole size belonged to this file.
        if (size > of.size && knownBytes(of) > 0) generations.update(of, { size });
        // Without a beginning, a file whose size is recorded could not be found again.
        if (isUnread(of)) learnFrom(fd, of);
        return true;
      });
    },
    finish(of) {
      if (of.rest.length < of.restBytes) {
        const whole = Buffer.allocUnsafe(of.restBytes);
        const read = onOpen(of, (fd) => disk.read(fd, whole, 0, whole.length, of.chain.offset)) ?? 0;
        generations.update(of, { rest: whole.subarray(0, read) });
      }
      sinks.finish(of);
    },
    learn: (of) => void onOpen(of, (fd) => learnFrom(fd, of)),
    startAtEnd(of) {
      const { size } = of.place!;
      let [offset, tail, chain] = [size, '', of.chain];
      onOpen(of, (fd) => {
        offset = lineStart(disk, fd, size);
        const length = Math.min(tailBytes, offset);
        const bytes = Buffer.allocUnsafe(length);
        tail = bytes.toString('latin1', 0, disk.read(fd, bytes, 0, length, offset - length));
        chain = learn(chain, readStart(fd).subarray(0, offset));
      });
      // The bytes before the offset were not read, so there is no checksum of them.
      const sum = offset === 0 ? 0 : undefined;
      generations.update(of, { chain: { ...chain, offset, sum, tail }, size });
      sinks.skip(of, 'start_at_end', offset);
    },
  };
}
