import { isSame } from '../../../core/byte-table.ts';
import { cursor, fastValue } from '../../../core/decimal.ts';

/**
 * Recognizes the buckets of a histogram that the vocabulary leaves out. They follow each other and differ only in `le`, so that
 * each is compared with the bucket before it. The comparison takes a fraction of the time of a look-up by hash.
 */
interface BucketRun {
  /** Begins a run with a valid line that is left out. Its key is in `view` from `start` to `valueAt`, and ends with a blank. */
  begin(view: DataView, start: number, valueAt: number): void;
  /**
   * Whether the line at `at` is another bucket of the run, with a plain value and no timestamp. Then `cursor.at` is the index of
   * its newline; otherwise the run ends. A newline must follow in `bytes`, and `view` must be a view of them.
   */
  continues(bytes: Buffer, view: DataView, at: number): boolean;
}

const bucketSuffix = '_bucket{';
/** Every bound has fewer bytes than this. */
const longestBound = 32;
const [quote, backslash, equals, newline] = [0x22, 0x5c, 0x3d, 0x0a];

export function createBucketRun(): BucketRun {
  /** The bytes of the last bucket; undefined if there is no run. */
  let of: DataView | undefined;
  let from = 0;
  /** The number of bytes of the bucket's key up to and including the quote before the bound. */
  let stemLength = 0;

  return {
    begin(view, start, valueAt) {
      of = undefined;
      stemLength = stemOf(view, start, valueAt);
      if (stemLength > 0) [of, from] = [view, start];
    },
    continues(bytes, view, at) {
      // A run continues only within one chunk: the memory of the last chunk may have other bytes by now.
      const isBucket =
        of === view && at + stemLength < view.byteLength && isSame(view, at, of, from, stemLength);
      const valueAt = isBucket ? afterBound(bytes, at + stemLength) : -1;
      if (valueAt !== -1) {
        fastValue(bytes, valueAt);
        if (bytes[cursor.at] === newline) {
          from = at;
          return true;
        }
      }
      of = undefined;
      return false;
    },
  };
}

/** Length of a bucket's key up to its bound, if `le` is the last label; 0 for any other key. */
function stemOf(view: DataView, start: number, valueAt: number): number {
  // The key ends with `"} `.
  if (valueAt < 3 || view.getUint16(valueAt - 3) !== 0x227d) return 0;
  let at = valueAt - 4;
  // A quote within a value has a backslash before it, not `le=`.
  while (at > start && view.getUint8(at) !== quote) at--;
  const isBound =
    view.getUint8(at - 1) === equals &&
    view.getUint16(at - 3) === 0x6c65 &&
    (view.getUint8(at - 4) === 0x2c || view.getUint8(at - 4) === 0x7b);
  return isBound && isBucketName(view, start, at) ? at + 1 - start : 0;
}

function isBucketName(view: DataView, start: number, end: number): boolean {
  let brace = start;
  while (brace < end && view.getUint8(brace) !== 0x7b) brace++;
  const from = brace + 1 - bucketSuffix.length;
  if (from <= start) return false;
  for (let n = 0; n < bucketSuffix.length; n++)
    if (view.getUint8(from + n) !== bucketSuffix.charCodeAt(n)) return false;
  return true;
}

/** The index after a bound of ASCII characters and `"} `; -1 for any other bound, which must be validated. */
function afterBound(bytes: Buffer, at: number): number {
  let end = at;
  const limit = at + longestBound;
  for (; bytes[end] !== quote; end++) {
    const byte = bytes[end]!;
    if (end === limit || byte === newline || byte === backslash || byte > 0x7f) return -1;
  }
  return bytes[end + 1] === 0x7d && bytes[end + 2] === 0x20 ? end + 3 : -1;
}
