import { constants, crc32, createGunzip, gunzipSync } from 'node:zlib';
import { systemCode } from '../../../core/errors.ts';
import type { Disk, Problems } from '../discovery/disk.ts';
import { covered, headBytes, learn, tailBytes } from './chain.ts';
import { type Generation, noBytes } from './generation.ts';
import type { Generations } from './generations.ts';
import type { OpenFiles } from './open-files.ts';
import type { Sinks } from './sinks.ts';

/** Archives of up to this size, packed and plain, are inflated at once. */
const smallPackedBytes = 64 * 1024;
const smallPlainBytes = 1024 * 1024;
/** How many packed bytes of a larger archive are inflated to see its beginning. */
const packedStartBytes = 6 * 1024;

/** Whether a content is gzip, as far as its first two bytes are there. */
export const isGzipStart = (start: Uint8Array): boolean =>
  start[0] === 0x1f && (start.length < 2 || start[1] === 0x8b);

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

/** The plain bytes of a small archive; 'unfinished' if its end is missing, undefined if it is large. */
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

/**
 * What a large archive tells without being inflated: its first plain bytes, and the plain size and checksum from the trailer of
 * its last member. Undefined if its end is missing.
 */
export function outlineOf(disk: Disk, fd: number, packedSize: number) {
  const packed = Buffer.allocUnsafe(packedStartBytes);
  const trailer = Buffer.alloc(8);
  disk.read(fd, trailer, 0, 8, packedSize - 8);
  const [sum, size] = [trailer.readUInt32LE(0), trailer.readUInt32LE(4)];
  try {
    const length = disk.read(fd, packed, 0, packed.length, 0);
    const plain = gunzipSync(packed.subarray(0, length), { finishFlush: constants.Z_SYNC_FLUSH });
    const start = plain.subarray(0, headBytes);
    return size < start.length ? undefined : { start, size, sum };
  } catch {
    return undefined;
  }
}

/**
 * The result of one read. 'changed': the bytes before the offset are not those that were read there; 'broken': an archive
 * cannot be inflated; 'absent': the file cannot be read now.
 */
export type Turn = 'more' | 'end' | 'changed' | 'broken' | 'absent';

interface ArchiveReaderDeps {
  disk: Disk;
  generations: Generations;
  openFiles: OpenFiles;
  sinks: Sinks;
  problems: Problems;
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
export function createArchiveReader({ disk, generations, openFiles, sinks, problems }: ArchiveReaderDeps) {
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
