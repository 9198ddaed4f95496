import { crc32, createGunzip, gunzipSync } from 'node:zlib';
import type { Disk } from './disk.ts';
import { growHead, growTail, headBytes, headGrows, tailBytes } from './fingerprint.ts';
import type { OpenFiles } from './open-files.ts';
import type { Problems } from './problems.ts';
import type { Sinks } from './reader.ts';
import { noBytes, type TrackedFile } from './tracked-file.ts';

/** Reads what is left of a generation from its gzip file, in bounded memory. */
export interface GzipReader {
  /**
   * Counts one chunk. 'changed': not the generation it seemed to be; 'broken': cannot be unpacked; 'closed': the file was
   * closed meanwhile, or cannot be opened now.
   */
  turn(file: TrackedFile): Promise<'more' | 'end' | 'changed' | 'broken' | 'closed'>;
  close(file: TrackedFile): void;
}

interface Unpacking {
  readonly fd: number;
  readonly chunks: AsyncGenerator<Buffer>;
  /** Plain bytes that have come. */
  position: number;
  /** The first of them, for the fingerprint. */
  start: Buffer;
  /** The last of those before the file's offset, until the offset is reached and they are checked. */
  before: Buffer | undefined;
  /** Those from the file's offset on. */
  pending: Buffer;
}

const packedChunkBytes = 64 * 1024;
/** An archive of up to this size, packed and plain, is unpacked in one step: most of the cost of a stream is its start. */
const smallPackedBytes = 8 * 1024;
const smallPlainBytes = 256 * 1024;

/** The whole archive if it is small; undefined if it is not, or if its end is missing. */
function unpackSmall(disk: Disk, fd: number): Buffer | undefined {
  const packed = Buffer.allocUnsafe(smallPackedBytes);
  const length = disk.read(fd, packed, 0, packed.length, 0);
  if (length === 0 || length === packed.length) return undefined;
  try {
    return gunzipSync(packed.subarray(0, length), { maxOutputLength: smallPlainBytes });
  } catch {
    return undefined;
  }
}

async function* unpacked(disk: Disk, file: TrackedFile, fd: number): AsyncGenerator<Buffer> {
  const whole = unpackSmall(disk, fd);
  if (whole) {
    yield whole;
    return;
  }
  const plain = createGunzip();
  let position = 0;
  const feed = () => {
    if (file.fd !== fd) throw new Error('closed meanwhile');
    const chunk = Buffer.allocUnsafe(packedChunkBytes);
    const length = disk.read(fd, chunk, 0, chunk.length, position);
    position += length;
    if (length === 0) plain.end();
    else plain.write(chunk.subarray(0, length), (failed) => failed || feedSafely());
  };
  const feedSafely = () => {
    try {
      feed();
    } catch (thrown) {
      plain.destroy(thrown as Error);
    }
  };
  feedSafely();
  yield* plain as AsyncIterable<Buffer>;
}

function unpack(disk: Disk, file: TrackedFile, fd: number): Unpacking {
  return {
    fd,
    chunks: unpacked(disk, file, fd),
    position: 0,
    start: noBytes,
    before: noBytes,
    pending: noBytes,
  };
}

/** Passes over what was counted before; returns what of the chunk comes after it, or undefined if it differs. */
function afterOffset(unpacking: Unpacking, file: TrackedFile, chunk: Buffer): Buffer | undefined {
  const { position } = unpacking;
  unpacking.position += chunk.length;
  if (unpacking.before === undefined) return chunk;
  const passed = Math.min(chunk.length, file.offset - position);
  const before = growTail(unpacking.before, chunk, 0, passed);
  unpacking.before = before;
  if (unpacking.position < file.offset) return noBytes;
  const { tailSum, fingerprint } = file;
  const last = (length: number) => before.subarray(Math.max(0, before.length - length));
  const agrees = tailSum
    ? last(tailSum.length).length === tailSum.length && crc32(last(tailSum.length)) === tailSum.sum
    : last(fingerprint.tail.length).equals(fingerprint.tail);
  unpacking.before = undefined;
  if (!agrees) return undefined;
  if (tailSum)
    Object.assign(file, {
      tailSum: undefined,
      fingerprint: { head: fingerprint.head, tail: Buffer.from(last(tailBytes)) },
    });
  return chunk.subarray(passed);
}

/** Extends the fingerprint of the beginning: without it, the bytes before the offset alone identify what was read. */
function growFingerprint(file: TrackedFile, start: Buffer): void {
  const { head, tail } = file.fingerprint;
  const length = Math.min(start.length, file.offset + file.restBytes);
  if (headGrows(head, length)) file.fingerprint = { head: growHead(head, start, length), tail };
}

export function createGzipReader({
  disk,
  openFiles,
  sinks,
  problems,
}: {
  disk: Disk;
  openFiles: OpenFiles;
  sinks: Sinks;
  problems: Problems;
}): GzipReader {
  const open = new Map<TrackedFile, Unpacking>();

  const close = (file: TrackedFile) => {
    void open.get(file)?.chunks.return(undefined);
    open.delete(file);
    file.isUnpacking = false;
  };

  const take = (file: TrackedFile, unpacking: Unpacking, chunk: Buffer): 'more' | 'changed' => {
    const missing = headBytes - unpacking.start.length;
    if (missing > 0) unpacking.start = Buffer.concat([unpacking.start, chunk.subarray(0, missing)]);
    const added = afterOffset(unpacking, file, chunk);
    if (added === undefined) return 'changed';
    if (added.length === 0) return 'more';
    const bytes = unpacking.pending.length > 0 ? Buffer.concat([unpacking.pending, added]) : added;
    unpacking.pending = bytes.subarray(sinks.write(file, bytes, 0, bytes.length));
    growFingerprint(file, unpacking.start);
    return 'more';
  };

  const end = (file: TrackedFile, unpacking: Unpacking): 'end' | 'changed' => {
    if (unpacking.position < file.offset) return 'changed';
    file.restBytes = unpacking.pending.length;
    file.rest = Buffer.from(unpacking.pending);
    growFingerprint(file, unpacking.start);
    return 'end';
  };

  const opened = (file: TrackedFile): Unpacking | undefined => {
    const known = open.get(file);
    const fd = openFiles.open(file);
    if (known && known.fd === fd) return known;
    close(file);
    if (fd === undefined) return undefined;
    const unpacking = unpack(disk, file, fd);
    open.set(file, unpacking);
    file.isUnpacking = true;
    return unpacking;
  };

  return {
    close,
    async turn(file) {
      const unpacking = opened(file);
      if (!unpacking) return 'closed';
      let next: IteratorResult<Buffer>;
      try {
        next = await unpacking.chunks.next();
      } catch (thrown) {
        if (open.get(file) !== unpacking || file.fd !== unpacking.fd) return 'closed';
        problems.report(file.real, 'compressed file cannot be read', thrown);
        close(file);
        return 'broken';
      }
      if (open.get(file) !== unpacking) return 'closed';
      const turn = next.done ? end(file, unpacking) : take(file, unpacking, next.value);
      if (turn !== 'more') close(file);
      return turn;
    },
  };
}
