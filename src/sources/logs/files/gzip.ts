import { constants, createGunzip, gunzipSync } from 'node:zlib';
import { systemCode } from '../../../core/errors.ts';
import { headBytes } from './chain.ts';
import type { Disk } from './disk.ts';

/** What is read of open gzip files. None is inflated at once unless it is small. */

/** Archives of up to this size, packed and plain, are inflated at once. */
const smallPackedBytes = 64 * 1024;
const smallPlainBytes = 1024 * 1024;
/** Bytes of a larger one that are inflated to see its beginning. */
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

/**
 * What a large archive tells without being inflated: its first plain bytes, and its plain size and checksum, which are those
 * of its last member. Undefined if its end is missing.
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
