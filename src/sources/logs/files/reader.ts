import { crc32 } from 'node:zlib';
import { AgentError, systemCode } from '../../../core/errors.ts';
import type { Clock } from '../../../core/ports.ts';
import { covered, headBytes, learn, marksAgree, tailBytes } from './chain.ts';
import { inflated, inflateSmall, isGzipStart } from './contents.ts';
import type { Disk, Problems } from './disk.ts';
import { type Generation, type Generations, isUnread, knownBytes, noBytes } from './generations.ts';
import type { OpenFiles } from './open-files.ts';
import type { Sinks } from './sinks.ts';

/**
 * The result of one read. 'changed': the bytes before the offset are not those that were read there; 'broken': an archive
 * cannot be inflated; 'absent': the file cannot be read now.
 */
type Turn = 'more' | 'end' | 'changed' | 'broken' | 'absent';

export interface Reader {
  /** Reads and counts one chunk. The first turn of a pass checks the file's beginning, too. */
  turn(of: Generation, isFirst: boolean): Turn | Promise<Turn>;
  /**
   * Whether the file still has the bytes that were read from it; undefined if it cannot be read now. `wasOpen` says that the file
   * was open before the comparison, so that its inode is still its own.
   */
  isIntact(of: Generation, wasOpen: boolean): boolean | undefined;
  /** Hands the sink the whole unfinished line as the last one. */
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

/** Reads all files into one shared buffer. Each read begins with the bytes before the offset, which verify the file. */
export function createReader(deps: ReaderDeps): Reader {
  const { clock, disk, generations, openFiles, sinks, problems } = deps;
  const archives = createArchiveReader(deps);
  let buffer = Buffer.allocUnsafe(tailBytes + chunkBytes);
  /** The number of bytes that a turn reads after the unfinished line. */
  let turnBytes = shortChunkBytes;
  const start = Buffer.allocUnsafe(headBytes);

  /** How much of the buffer a turn fills. */
  const roomFor = ({ chain, restBytes }: Generation): number =>
    Math.min(buffer.length, chain.tail.length + restBytes + turnBytes);

  const readFrom = (fd: number, of: Generation): number => {
    const { offset, tail } = of.chain;
    const room = roomFor(of);
    let filled = 0;
    for (;;) {
      const read = disk.read(fd, buffer, filled, room - filled, offset - tail.length + filled);
      filled += read;
      if (read === 0 || filled === room || filled >= tail.length + of.restBytes) return filled;
    }
  };

  /** Adapts the size of the next turn to how long this one took for `bytes`. */
  const fitTurn = (bytes: number, tookMs: number) => {
    const fittingBytes = Math.floor((bytes * turnMs) / Math.max(tookMs, 0.001));
    turnBytes = Math.max(shortChunkBytes, Math.min(chunkBytes, 2 * turnBytes, fittingBytes));
  };

  const readStart = (fd: number) => start.subarray(0, disk.read(fd, start, 0, headBytes, 0));

  const startAgrees = (fd: number, { chain }: Generation, filled: number): boolean => {
    const { marks, offset, tail } = chain;
    if (marks.length === 0 || (offset > 0 && offset <= tail.length)) return true;
    // If nothing of the file was counted, everything that is known must be there.
    if (offset === 0 && filled < covered(chain)) return false;
    return marksAgree(chain, offset === 0 ? buffer.subarray(0, filled) : readStart(fd)) ?? false;
  };

  const restAgrees = ({ chain: { tail }, rest, restBytes }: Generation, filled: number) => {
    const from = tail.length;
    if (filled < Math.min(from + restBytes, buffer.length)) return false;
    return rest.length === 0 || rest.compare(buffer, from, from + rest.length) === 0;
  };

  /** Compares what was read into the buffer, and at the first turn the file's beginning, with what was read before. */
  const check = (fd: number, of: Generation, filled: number, isFirst: boolean) => {
    const { tail, offset } = of.chain;
    if (filled < tail.length || buffer.toString('latin1', 0, tail.length) !== tail) return 'changed';
    if (isFirst && !startAgrees(fd, of, filled)) return 'changed';
    if (restAgrees(of, filled)) return 'same';
    return offset === 0 ? 'changed' : 'cut';
  };

  /**
   * Marks the beginning of a file. The file may have been rewritten since it was read, so the marks that are known already must
   * agree.
   */
  const learnFrom = (fd: number, of: Generation) => {
    const { chain, rest } = of;
    // A file that was empty at first may turn out to be a copy of another one.
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
  };

  /** Counts as skipped the bytes that a file lost: it is shorter than it was, and still has all counted bytes. */
  const noteLoss = (of: Generation) => {
    const { size } = of.place!;
    if (size < of.size && size >= of.chain.offset + of.restBytes) {
      sinks.skip(of, 'truncated', of.size - size);
      generations.update(of, { size });
    }
  };

  /**
   * Handles a read that ended before the size that was looked up before it: the file was truncated in between. False if the file
   * may be another one with the same beginning: its beginning was known and nothing was read from it, or it was not open all the
   * time.
   */
  const noteShrinking = (of: Generation, filled: number, wasOpen: boolean): boolean => {
    const { marks, offset, tail } = of.chain;
    const end = offset + filled - tail.length;
    const { size } = of.place!;
    if (filled === roomFor(of) || end >= size) return true;
    const isNew = offset + of.restBytes === 0;
    if (!wasOpen || (isNew && marks.length > 0)) return false;
    if (!isNew) generations.update(of, { size: Math.max(of.size, size) });
    generations.relocate(of, { size: end });
    return true;
  };

  const makeRoom = (real: string) => {
    if (buffer.length >= tailBytes + bufferLimit) {
      const what = 'the line sink takes nothing of a full buffer';
      throw new AgentError('internal', { where: real, what, got: buffer.length });
    }
    buffer = Buffer.allocUnsafe(tailBytes + Math.min(bufferLimit, 2 * (buffer.length - tailBytes)));
  };

  const take = (fd: number, of: Generation, isFirst: boolean, wasOpen: boolean): Turn => {
    const filled = readFrom(fd, of);
    const state = check(fd, of, filled, isFirst);
    if (state === 'changed') return 'changed';
    // The file is an archive that was empty when it was looked at. It is identified anew.
    if (filled > 0 && of.chain.offset + of.restBytes === 0 && isGzipStart(buffer.subarray(0, filled)))
      return 'changed';
    const place = of.place!;
    const from = of.chain.tail.length;
    const isBeginning = of.chain.offset === from;
    const isFull = filled === roomFor(of);
    if (!noteShrinking(of, filled, wasOpen)) return 'changed';
    place.isVerified = true;
    if (state === 'cut') sinks.cut(of);
    noteLoss(of);
    const end = of.chain.offset + filled - from;
    place.readMtimeNs = place.mtimeNs;
    generations.update(of, { size: Math.max(of.size, place.size, end) });
    if (filled - from <= of.restBytes && !isFull) return 'end';
    // The beginning is marked before anything counts, so that no line counts whose file could not be found again.
    if (isBeginning) generations.update(of, { chain: learn(of.chain, buffer.subarray(0, filled)) });
    const beganMs = clock.monotonicMs();
    const taken = sinks.write(of, buffer, from, filled);
    if (isFull) fitTurn(filled - from, clock.monotonicMs() - beganMs);
    if (taken === 0 && filled === buffer.length) makeRoom(place.real);
    return isFull && of.chain.offset + of.restBytes < place.size ? 'more' : 'end';
  };

  /** Runs `call` on the open file. After a stale handle, the file is opened again once. */
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
        const state = check(fd, of, readFrom(fd, of), true);
        // If a file was not open all the time and lost bytes, it may be another one with the same beginning.
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
        offset = lineStart(fd, size);
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

interface Unpacking {
  readonly fd: number;
  readonly chunks: AsyncGenerator<Buffer>;
  /** The position in the plain bytes, and the CRC-32 of the bytes before the offset. */
  position: number;
  sum: number;
  isChecked: boolean;
  /** The last bytes before the offset, then the bytes from the offset on that are not counted. */
  pending: Buffer;
  start: Buffer;
}

async function* unpacked(disk: Disk, of: Generation, fd: number): AsyncGenerator<Buffer> {
  const small = inflateSmall(disk, fd, disk.fstat(fd).size);
  if (small === 'unfinished') throw new Error('unexpected end of file');
  if (small) yield small;
  else yield* inflated(disk, fd, () => of.place?.fd === fd);
}

/** Reads the rest of a generation from its gzip file, in bounded memory. */
function createArchiveReader({ disk, generations, openFiles, sinks, problems }: ReaderDeps) {
  const open = new Map<Generation, Unpacking>();

  const close = (of: Generation) => {
    void open.get(of)?.chunks.return(undefined);
    if (open.delete(of) && of.place) of.place.isUnpacking = false;
  };

  const opened = (of: Generation): Unpacking | undefined => {
    const known = open.get(of);
    const fd = of.place && openFiles.open(of.place);
    if (known && known.fd === fd) return known;
    close(of);
    if (fd === undefined) return undefined;
    const chunks = unpacked(disk, of, fd);
    const next = { fd, chunks, position: 0, sum: 0, isChecked: false, pending: noBytes, start: noBytes };
    open.set(of, next);
    of.place!.isUnpacking = true;
    return next;
  };

  /** Skips the bytes that were counted before; false if they differ from what was counted. */
  const passCounted = (of: Generation, unpacking: Unpacking, chunk: Buffer): boolean => {
    const { offset, sum, tail } = of.chain;
    const passed = Math.min(chunk.length, offset - unpacking.position);
    unpacking.sum = crc32(chunk.subarray(0, passed), unpacking.sum);
    const joined = Buffer.concat([unpacking.pending, chunk]);
    const end = joined.length - chunk.length + passed;
    unpacking.pending = joined.subarray(Math.max(0, end - tail.length));
    if (unpacking.position + chunk.length < offset) {
      unpacking.pending = Buffer.from(joined.subarray(Math.max(0, end - tailBytes), end));
      return true;
    }
    unpacking.isChecked = true;
    return (
      unpacking.pending.toString('latin1', 0, tail.length) === tail &&
      (sum ?? unpacking.sum) === unpacking.sum
    );
  };

  const take = (of: Generation, unpacking: Unpacking, chunk: Buffer): Turn => {
    const missing = headBytes - unpacking.start.length;
    if (missing > 0) unpacking.start = Buffer.concat([unpacking.start, chunk.subarray(0, missing)]);
    if (!unpacking.isChecked) {
      if (!passCounted(of, unpacking, chunk)) return 'changed';
    } else unpacking.pending = Buffer.concat([unpacking.pending, chunk]);
    unpacking.position += chunk.length;
    if (!unpacking.isChecked) return 'more';
    const { pending } = unpacking;
    if (covered(of.chain) < headBytes) generations.update(of, { chain: learn(of.chain, unpacking.start) });
    const from = of.chain.tail.length;
    if (pending.length > from) {
      sinks.write(of, pending, from, pending.length);
      unpacking.pending = Buffer.from(pending.subarray(pending.length - of.restBytes - of.chain.tail.length));
    }
    generations.update(of, { size: Math.max(of.size, unpacking.position) });
    return 'more';
  };

  const end = (of: Generation, { isChecked, position, pending }: Unpacking): Turn => {
    if (!isChecked && position < of.chain.offset) return 'changed';
    const rest = Buffer.from(pending.subarray(of.chain.tail.length));
    generations.update(of, { restBytes: rest.length, rest });
    return 'end';
  };

  return {
    close,
    async turn(of: Generation): Promise<Turn> {
      const unpacking = opened(of);
      if (!unpacking) return 'absent';
      let next: IteratorResult<Buffer>;
      try {
        next = await unpacking.chunks.next();
      } catch (thrown) {
        if (open.get(of) !== unpacking || of.place?.fd !== unpacking.fd) return 'absent';
        problems.report(of.place.real, 'compressed file cannot be read', thrown);
        close(of);
        return 'broken';
      }
      if (open.get(of) !== unpacking) return 'absent';
      const turn = next.done ? end(of, unpacking) : take(of, unpacking, next.value);
      if (turn !== 'more') close(of);
      return turn;
    },
  };
}
