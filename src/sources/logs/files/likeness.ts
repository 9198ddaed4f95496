import { gunzipSync, constants as zlib } from 'node:zlib';
import type { Disk } from './disk.ts';
import { isCompressed } from './family.ts';
import { headAgrees, headBytes } from './mark.ts';
import type { Sibling } from './siblings.ts';
import type { Trail } from './trail.ts';
import type { Troubles } from './troubles.ts';

/**
 * How a file's bytes stand to what was read of a trail. 'whole': it has them up to the offset and may have more.
 * 'short': it ends before the offset and begins the same. 'perhaps': compressed, and begins the same.
 */
export type Likeness = 'whole' | 'short' | 'perhaps' | 'none';

export interface Likenesses {
  of(file: Sibling, trail: Trail): Likeness;
  /** Whether the file is, as far as it goes, the same as the trail's file on disk. */
  isCopyOnDisk(file: Sibling, trail: Trail): boolean;
}

const compareBytes = 1024;
const compressedBytes = 64 * 1024;

export function createLikenesses({ disk, troubles }: { disk: Disk; troubles: Troubles }): Likenesses {
  const readAt = (fd: number, length: number, position: number): Buffer => {
    const bytes = Buffer.allocUnsafe(length);
    return bytes.subarray(0, disk.read(fd, bytes, 0, length, position));
  };

  const withOpen = <T>(path: string, call: (fd: number) => T): T | undefined => {
    try {
      const fd = disk.open(path);
      try {
        return call(fd);
      } finally {
        disk.close(fd);
      }
    } catch (thrown) {
      troubles.tell(path, 'file cannot be compared', thrown);
      return undefined;
    }
  };

  const ofPlain = (fd: number, size: number, { mark, offset, rest }: Trail): Likeness => {
    const start = readAt(fd, headBytes, 0);
    const sameStart = headAgrees(mark, start);
    if (sameStart === false) return 'none';
    if (size < offset) {
      const coversAll = offset === mark.tail.length && mark.tail.subarray(0, size).equals(start);
      return size > 0 && (sameStart || coversAll) ? 'short' : 'none';
    }
    const known = Buffer.concat([mark.tail, rest]);
    const there = readAt(fd, known.length, offset - mark.tail.length);
    const reaches = there.length > 0 && there.length >= mark.tail.length;
    return reaches && there.equals(known.subarray(0, there.length)) ? 'whole' : 'none';
  };

  /** An open file is compared itself, too: it may have been rewritten since anything was read of it. */
  const ofCompressed = (fd: number, { mark, rest, fd: own }: Trail): Likeness => {
    const packed = readAt(fd, compressedBytes, 0);
    if (packed[0] !== 0x1f || packed[1] !== 0x8b) return 'none';
    const start = gunzipSync(packed, { finishFlush: zlib.Z_SYNC_FLUSH }).subarray(0, headBytes);
    if (start.length > 0 && own !== undefined && readAt(own, headBytes, 0).equals(start)) return 'perhaps';
    if (mark.head.length > 0) return headAgrees(mark, start) ? 'perhaps' : 'none';
    const known = Buffer.concat([mark.tail, rest]);
    return known.length > 0 && start.subarray(0, known.length).equals(known) ? 'perhaps' : 'none';
  };

  return {
    of: (file, trail) =>
      withOpen(file.path, (fd) =>
        isCompressed(file.name) ? ofCompressed(fd, trail) : ofPlain(fd, file.size, trail),
      ) ?? 'none',
    isCopyOnDisk: (file, trail) =>
      withOpen(file.path, (fd) => {
        if (trail.fd === undefined || file.size === 0 || file.size > trail.nowSize) return false;
        const end = file.size;
        const from = Math.max(0, end - compareBytes);
        return (
          readAt(fd, compareBytes, 0)
            .subarray(0, end)
            .equals(readAt(trail.fd, compareBytes, 0).subarray(0, end)) &&
          readAt(fd, end - from, from).equals(readAt(trail.fd, end - from, from))
        );
      }) ?? false,
  };
}
