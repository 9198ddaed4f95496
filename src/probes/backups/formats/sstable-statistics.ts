import { crc32 } from 'node:zlib';

/**
 * The statistics of an SSTable (`Statistics.db`; Apache Cassandra, MetadataSerializer and StatsMetadata). From version `na` on
 * the table of contents and each part end with a CRC-32. The statistics state in which part of the node's commit log the rows of
 * the SSTable were written.
 */

/** A position in the commit log of a node: the number of a segment, and a place in it. */
export type LogPlace = readonly [segment: number, offset: number];

/** A part of the commit log. The position `to` is not in it. */
export interface LogRange {
  from: LogPlace;
  to: LogPlace;
}

/** Compares positions in the order of the log. The rows of a flush begin where the previous flush ended. */
export const comparePlaces = (one: LogPlace, other: LogPlace): number =>
  one[0] - other[0] || one[1] - other[1];

/** The oldest version of the format `big` with checksums; the format `bti` has always had them. */
const checkedFrom = 'na';
/** The type of the part with the positions. */
const statsType = 2;
const placeBytes = 12;

interface Statistics {
  fault?: string;
  /** Undefined for rows that were not written through the commit log, and for older versions. */
  range?: LogRange;
  /** The number of partitions. */
  partitions?: number;
}

/** Reads the content of the file with this name. */
export function readStatistics(name: string, bytes: Buffer): Statistics {
  if (/-big-Statistics\.db$/.test(name) && name < checkedFrom) return {};
  try {
    const parts = partsOf(bytes);
    const stats = parts.get(statsType);
    return stats === undefined ? {} : { range: rangeIn(stats), partitions: partitionsIn(stats) };
  } catch (thrown) {
    // A read beyond the end throws a RangeError: the file is cut off.
    if (!(thrown instanceof RangeError || thrown instanceof Damaged)) throw thrown;
    return { fault: `${name} does not match its checksums` };
  }
}

class Damaged extends Error {}

/** The parts by their types, each without its checksum. */
function partsOf(bytes: Buffer): ReadonlyMap<number, Buffer> {
  const count = bytes.readInt32BE(0);
  const ofCount = crc32(bytes.subarray(0, 4));
  const end = 8 + 8 * count;
  if (ofCount !== bytes.readUInt32BE(4)) throw new Damaged();
  if (crc32(bytes.subarray(8, end), ofCount) !== bytes.readUInt32BE(end)) throw new Damaged();
  const starts = Array.from({ length: count }, (_, at) => bytes.readInt32BE(12 + 8 * at));
  const parts = new Map<number, Buffer>();
  for (const [at, start] of starts.entries()) {
    const next = starts[at + 1] ?? bytes.length;
    const part = bytes.subarray(start, next - 4);
    if (crc32(part) !== bytes.readUInt32BE(next - 4)) throw new Damaged();
    parts.set(bytes.readInt32BE(8 + 8 * at), part);
  }
  return parts;
}

/** The sum of the histogram of the sizes of partitions. */
function partitionsIn(stats: Buffer): number {
  let sum = 0;
  for (let bucket = 0; bucket < stats.readInt32BE(0); bucket++)
    sum += Number(stats.readBigInt64BE(4 + 16 * bucket + 8));
  return sum;
}

/**
 * The range in the statistics. Its end follows two histograms. Its start follows parts that differ between versions, so it is
 * found by what is written there: the start, the number of ranges, and the ranges, the first of which begins at the start and the
 * last of which ends at the end.
 */
function rangeIn(stats: Buffer): LogRange | undefined {
  let at = 0;
  for (let histograms = 0; histograms < 2; histograms++) at += 4 + 16 * stats.readInt32BE(at);
  const end = stats.subarray(at, at + placeBytes);
  const to = placeIn(end);
  if (to[0] < 0) return undefined;
  for (let last = stats.lastIndexOf(end); last > at; last = stats.lastIndexOf(end, last - 1)) {
    for (let ranges = 1; ; ranges++) {
      const first = last + placeBytes - 2 * placeBytes * ranges;
      const start = first - 4 - placeBytes;
      if (start <= at) break;
      const isCount = stats.readInt32BE(first - 4) === ranges;
      const from = stats.subarray(first, first + placeBytes);
      if (isCount && from.equals(stats.subarray(start, start + placeBytes)))
        return { from: placeIn(from), to };
    }
  }
  return undefined;
}

const placeIn = (bytes: Buffer): LogPlace => [Number(bytes.readBigInt64BE(0)), bytes.readInt32BE(8)];

/** The ranges in the order of the log. Ranges that meet or overlap are joined. */
export function joined(ranges: readonly LogRange[]): LogRange[] {
  const found: LogRange[] = [];
  for (const range of ranges.toSorted((one, other) => comparePlaces(one.from, other.from))) {
    const last = found.at(-1);
    if (last === undefined || comparePlaces(range.from, last.to) > 0) found.push(range);
    else if (comparePlaces(range.to, last.to) > 0)
      found[found.length - 1] = { from: last.from, to: range.to };
  }
  return found;
}
