import type { Unwrapped } from './unwrapped.ts';

const space = 0x20;
/** The longest RFC 3339 time with nanoseconds and an offset has 35 characters. */
const longestTime = 40;
const streams = [Buffer.from('stdout'), Buffer.from('stderr')] as const;

function streamAt(bytes: Buffer, at: number): string | undefined {
  for (const stream of streams) {
    if (bytes[at + stream.length] === space && stream.equals(bytes.subarray(at, at + stream.length))) {
      return stream === streams[0] ? 'stdout' : 'stderr';
    }
  }
  return undefined;
}

/**
 * Unwraps `<RFC 3339 time> stdout|stderr <tags> <text>`, the log format of Kubernetes' container runtime
 * interface. The first of the tags, which are parted by colons, is `P` for a partial line and `F` for a full one.
 */
export function unwrapCri(bytes: Buffer, view: DataView, at: number, end: number, into: Unwrapped): boolean {
  if (bytes[at + 4] !== 0x2d || bytes[at + 7] !== 0x2d || bytes[at + 10] !== 0x54) return false;
  const timeTo = bytes.indexOf(space, at);
  if (timeTo < 0 || timeTo - at > longestTime || timeTo >= end) return false;
  const stream = streamAt(bytes, timeTo + 1);
  if (stream === undefined) return false;
  const tag = timeTo + 1 + stream.length + 1;
  const isPartial = bytes[tag] === 0x50;
  if (!isPartial && bytes[tag] !== 0x46) return false;
  let tagTo = tag + 1;
  if (bytes[tagTo] === 0x3a) while (tagTo < end && bytes[tagTo] !== space) tagTo++;
  if (tagTo < end && bytes[tagTo] !== space) return false;
  into.bytes = bytes;
  into.view = view;
  into.from = Math.min(tagTo + 1, end);
  into.to = end;
  into.stream = stream;
  into.partial = isPartial;
  return true;
}
