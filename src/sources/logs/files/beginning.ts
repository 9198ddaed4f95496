import type { Descriptors } from './descriptors.ts';
import type { Disk } from './disk.ts';
import { growHead, headBytes, tailBytes } from './mark.ts';
import type { Sinks } from './sinks.ts';
import type { Trail } from './trail.ts';

/** How far back from the end the beginning of an unfinished line is looked for. */
const lineLimit = 1024 * 1024;
const newline = 10;

interface BeginningDeps {
  disk: Disk;
  descriptors: Descriptors;
  sinks: Sinks;
}

/**
 * Puts a new trail at its file's end (`startAt: end`), before a line that is not finished yet; what it passes
 * over is counted. A file that cannot be opened yet is passed over as long as it is.
 */
export function startAtEnd(trail: Trail, { disk, descriptors, sinks }: BeginningDeps): void {
  const fd = descriptors.open(trail);
  const size = trail.nowSize;
  trail.offset = fd === undefined ? size : lineStart(disk, fd, size);
  if (fd !== undefined) {
    const head = Buffer.allocUnsafe(Math.min(headBytes, trail.offset));
    const tail = Buffer.allocUnsafe(Math.min(tailBytes, trail.offset));
    disk.read(fd, head, 0, head.length, 0);
    disk.read(fd, tail, 0, tail.length, trail.offset - tail.length);
    trail.mark = { head: growHead([], head, head.length), tail };
  }
  trail.size = size;
  sinks.skip(trail, 'start_at_end', trail.offset);
}

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
