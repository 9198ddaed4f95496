import type { IntegrityResult } from '../../core/reasons.ts';
import type { WalRange } from './manifest.ts';

/** One archived piece of a write-ahead or binary log. */
export interface Segment {
  /** Its path below the directory of the archive: pgBackRest and Barman keep WAL in folders such as 0000000100000000. */
  name: string;
  /** When its archived copy was written: everything before that moment is in it, or in an older one. */
  endMs: number;
  sizeBytes: number;
}

/** An unbroken run of segments. */
export interface SegmentRun {
  first: string;
  last: string;
  firstEndMs: number;
  lastEndMs: number;
  count: number;
  sizeBytes: number;
  /** Position of the first and last segment in the log; comparable within a timeline. */
  from: SegmentPosition;
  to: SegmentPosition;
  /** Of a write-ahead log. */
  segmentBytes?: number;
}

export interface SegmentPosition {
  /** PostgreSQL's timeline; 0 for a binary log. */
  timeline: number;
  number: number;
}

export type LogKind = 'wal' | 'binlog';

/** JSON, for the process that verifies. */
export interface SegmentsToVerify {
  log: LogKind;
  /** In the log's order. */
  names: readonly string[];
  /** The one before the first, in which a record may begin. */
  before?: string;
  /** The newest of all, which the server may still write. */
  newest: string;
}

/** What verification has found in an archived log; JSON. */
export interface VerifiedLog {
  /** Of a write-ahead log, once a segment has said it. */
  segmentBytes?: number;
  /** Everything up to this segment was verified, but for segments that were written after `endMs`. */
  to?: SegmentPosition & { endMs: number };
  /** Of the newest segments that were verified together. */
  result: IntegrityResult;
  msg: string;
  /** By name. One that was replaced is verified again. */
  damaged: Readonly<Record<string, { sizeBytes: number; endMs: number; msg: string }>>;
}

/** `initdb --wal-segsize` without an argument. */
const usualWalSegmentBytes = 16 * 1024 * 1024;

/** Folders of an archive that hold segments: the beginning of the names in it. */
export const walFolder = /^[0-9A-F]{16}$/;

const withoutFolder = (name: string): string => name.replace(/^[0-9A-F]{16}\//, '');

/** The name that the server gave to an archived segment: tools put a checksum or a suffix behind it. */
export const archivedName = (name: string): string =>
  withoutFolder(name)
    .replace(compressedSuffix, '')
    .replace(/^([0-9A-F]{24})-[0-9a-f]{40}$/, '$1');

const compressedSuffix = /\.(?:gz|zst|lz4|xz|bz2|lzma|br)$/;

/** The size of the segments of a write-ahead log by that of a segment that is not compressed; undefined without one. */
export function plainWalSegmentBytes(segments: readonly Segment[]): number | undefined {
  return segments.find(
    ({ name, sizeBytes }) => /^[0-9A-F]{24}$/.test(withoutFolder(name)) && isSegmentSize(sizeBytes),
  )?.sizeBytes;
}

/** PostgreSQL: a power of two from 1 MiB to 1 GiB. */
const isSegmentSize = (bytes: number) => bytes >= 2 ** 20 && bytes <= 2 ** 30 && (bytes & (bytes - 1)) === 0;

/**
 * The position of a segment in its log; `walPerId` segments make up 4 GiB of WAL, which is where the last part of a
 * segment's name starts again at 0. Undefined for names of other files, such as histories and partial segments.
 */
export function segmentPosition(kind: LogKind, name: string, walPerId: number): SegmentPosition | undefined {
  // WAL-G, Barman and pgBackRest put a checksum or a suffix behind the name.
  const plain = withoutFolder(name).replace(compressedSuffix, '');
  if (kind === 'binlog') {
    const number = /\.(\d{6,})$/.exec(plain)?.[1];
    return number === undefined ? undefined : { timeline: 0, number: Number(number) };
  }
  const parts = /^([0-9A-F]{8})([0-9A-F]{8})([0-9A-F]{8})(?:-[0-9a-f]{40})?$/.exec(plain);
  if (!parts) return undefined;
  const [timeline, id, segment] = parts.slice(1).map((hex) => Number.parseInt(hex, 16)) as [
    number,
    number,
    number,
  ];
  return { timeline, number: id * walPerId + segment };
}

export interface PlacedSegment {
  segment: Segment;
  at: SegmentPosition;
}

/** In the log's order; other files, such as histories and partial segments, are left out. */
export function placeSegments(
  kind: LogKind,
  segments: readonly Segment[],
  walSegmentBytes = usualWalSegmentBytes,
): PlacedSegment[] {
  const perId = 2 ** 32 / walSegmentBytes;
  return segments
    .flatMap((segment) => {
      const at = segmentPosition(kind, segment.name, perId);
      return at ? [{ segment, at }] : [];
    })
    .sort((one, other) => comparePositions(one.at, other.at));
}

export const comparePositions = (one: SegmentPosition, other: SegmentPosition): number =>
  one.timeline - other.timeline || one.number - other.number;

/**
 * Unbroken runs of archived segments, in the log's order. After a switch of timeline the new one goes on in the
 * segment where the old one ended, or the one after it; that is no gap.
 */
export function segmentRuns(
  kind: LogKind,
  segments: readonly Segment[],
  walSegmentBytes = usualWalSegmentBytes,
): SegmentRun[] {
  const placed = placeSegments(kind, segments, walSegmentBytes);
  const runs: SegmentRun[] = [];
  for (const { segment, at } of placed) {
    const run = runs.at(-1);
    if (run && follows(run.to, at)) extend(run, segment, at);
    else if (!run || run.to.number !== at.number || run.to.timeline !== at.timeline)
      runs.push(runOf(segment, at));
  }
  if (kind === 'wal') for (const run of runs) run.segmentBytes = walSegmentBytes;
  return runs;
}

function follows(last: SegmentPosition, next: SegmentPosition): boolean {
  if (last.timeline === next.timeline) return next.number === last.number + 1;
  return next.timeline > last.timeline && (next.number === last.number || next.number === last.number + 1);
}

function runOf({ name, endMs, sizeBytes }: Segment, at: SegmentPosition): SegmentRun {
  return {
    first: name,
    last: name,
    firstEndMs: endMs,
    lastEndMs: endMs,
    count: 1,
    sizeBytes,
    from: at,
    to: at,
  };
}

function extend(run: SegmentRun, { name, endMs, sizeBytes }: Segment, at: SegmentPosition): void {
  run.last = name;
  run.to = at;
  run.lastEndMs = Math.max(run.lastEndMs, endMs);
  run.count += 1;
  run.sizeBytes += sizeBytes;
}

/** Number of the segment that holds a position such as `0/3000028`. */
export function segmentOfLsn(lsn: string, segmentBytes = usualWalSegmentBytes): number {
  const [high, low] = lsn.split('/').map((hex) => Number.parseInt(hex, 16)) as [number, number];
  return high * (2 ** 32 / segmentBytes) + Math.floor(low / segmentBytes);
}

/** The run that has every segment that a base backup needs, and those after it; undefined when one is missing. */
export function runFromBaseBackup(
  runs: readonly SegmentRun[],
  ranges: readonly WalRange[],
): SegmentRun | undefined {
  if (ranges.length === 0) return undefined;
  return runs.find((run) =>
    ranges.every(
      ({ timeline, start, end }) =>
        run.from.timeline <= timeline &&
        run.to.timeline >= timeline &&
        run.from.number <= segmentOfLsn(start, run.segmentBytes) &&
        run.to.number >= segmentOfLsn(end, run.segmentBytes),
    ),
  );
}

/** The run that continues a dump: the one with the file that the dump names, or that was written while it ran. */
export function runFromDump(
  runs: readonly SegmentRun[],
  dump: { startMs: number; binlog?: string },
): SegmentRun | undefined {
  if (dump.binlog !== undefined) {
    const at = segmentPosition('binlog', dump.binlog, 1);
    return at && runs.find(({ from, to }) => from.number <= at.number && to.number >= at.number);
  }
  // Without a position in the dump, the segments must reach back to before it began.
  return runs.find(({ firstEndMs, lastEndMs, from }) => {
    const reachesBack = firstEndMs <= dump.startMs || from.number === 1;
    return reachesBack && lastEndMs >= dump.startMs;
  });
}
