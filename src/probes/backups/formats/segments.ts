import type { ArchivedLog } from '../../stores/store-report.ts';
import type { WalReading, WalRemainder } from './wal-segment.ts';

/** One archived piece of a write-ahead or binary log. */
export interface Segment {
  /** The path below the directory of the archive: pgBackRest and Barman store WAL in folders such as 0000000100000000. */
  name: string;
  /** When the file was last changed. No time in it can be later, but all may be much earlier. */
  endMs: number;
  sizeBytes: number;
  /** What was read from the segment; undefined while that is awaited. */
  content?: SegmentContent;
}

interface SegmentPosition {
  /** The timeline of PostgreSQL; 0 for a binary log. */
  timeline: number;
  number: number;
}

export type LogKind = 'wal' | 'binlog';

/** Segments for the process that verifies them, as JSON. */
export interface SegmentsToVerify {
  log: LogKind;
  /** The names in the order of the log. */
  names: readonly string[];
  /** The segment before the first one, if it was read, and what continues from it. */
  after?: string;
  remainder?: WalRemainder;
  /** The newest of all segments, which the server may still write. */
  newest: string;
  /** Positions in files of a binary log at which backups were taken, by name of the file. */
  places?: Readonly<Record<string, readonly number[]>>;
}

/** What the content of one segment shows, as JSON. */
export interface SegmentContent {
  /** What is damaged. */
  fault?: string;
  /** Why the segment cannot be verified. */
  unverified?: string;
  /** The segment, or a segment before it, contains everything that was committed before this time; ms since the epoch. */
  newestMs?: number;
  bytes?: number;
  /** MD5 of the file, hexadecimal. */
  md5?: string;
  /** Name of the segment that was read before this one; a record may continue from it. */
  after?: string;
  /** What was read from a segment of a write-ahead log. */
  wal?: Omit<WalReading, 'newestMs'>;
  binlog?: BinlogContent;
}

interface BinlogContent {
  /** Whether the last event says that the file is complete. */
  isClosed: boolean;
  /** Whether the file ends within an event, which is allowed only for the newest file. */
  isCut?: boolean;
  /** When the server began the file, by its own clock, ms since the epoch. */
  begunMs?: number;
  /** The `server_id` of the server that wrote the file. */
  owner?: number;
  /** When each server committed its newest transaction in the file, by its `server_id` and MariaDB's domain; ms since the epoch. */
  committedMs?: Readonly<Record<number, Readonly<Record<number, number>>>>;
  /** Whether the file, which is of a replica, lacks transactions of its source. */
  skips?: boolean;
  /** MariaDB's positions before and after the file, as `DOMAIN-NUMBER` with commas. */
  fromGtids?: string;
  toGtids?: string;
  /**
   * MariaDB's positions, `DOMAIN-SERVER-NUMBER`, at the requested places in the file; `''` if there are none, null if no event
   * begins there.
   */
  places?: Readonly<Record<number, string | null>>;
}

/** A position in a binary log. */
export interface BinlogPlace {
  file: string;
  position: number;
  /** MariaDB's positions there, as `DOMAIN-SERVER-NUMBER` with commas, if they are known. */
  gtids?: string;
}

/** The default of `initdb --wal-segsize`. */
export const usualWalSegmentBytes = 16 * 1024 * 1024;

/** Names of an archive's folders with segments: they are the beginning of the segments' names. */
export const walFolder = /^[0-9A-F]{16}$/;

const withoutFolder = (name: string): string => name.replace(/^[0-9A-F]{16}\//, '');

/** The name that the server gave to an archived segment: tools append a checksum or a suffix. */
export const archivedName = (name: string): string =>
  withoutFolder(name)
    .replace(packedSuffixes, '')
    .replace(/^([0-9A-F]{24})-[0-9a-f]{40}$/, '$1');

/** The SHA-1 of the content that pgBackRest appends to the name of a segment. */
export const checksumOf = (name: string): string | undefined => /-([0-9a-f]{40})(?:\.|$)/.exec(name)?.[1];

/** Suffixes of compressed and encrypted files: a segment is not missing because its content cannot be read. */
const packedSuffixes = /(?:\.(?:gz|zst|lz4|xz|bz2|lzma|br|gpg|pgp|asc|age|enc))+$/;

/** The size of the segments of a write-ahead log, from a segment that is not compressed; undefined if there is none. */
export function plainWalSegmentBytes(segments: readonly Segment[]): number | undefined {
  return segments.find(
    ({ name, sizeBytes }) => /^[0-9A-F]{24}$/.test(withoutFolder(name)) && isSegmentSize(sizeBytes),
  )?.sizeBytes;
}

/** Whether a size is one of PostgreSQL's: a power of two from 1 MiB to 1 GiB. */
const isSegmentSize = (bytes: number) => bytes >= 2 ** 20 && bytes <= 2 ** 30 && (bytes & (bytes - 1)) === 0;

/**
 * The position of a segment in its log; `walPerId` segments make up 4 GiB of WAL, which is where the last part of a
 * segment's name starts again at 0. Undefined for names of other files, such as histories and partial segments.
 */
export function segmentPosition(kind: LogKind, name: string, walPerId: number): SegmentPosition | undefined {
  // WAL-G, Barman and pgBackRest append a checksum or a suffix to the name.
  const plain = withoutFolder(name).replace(packedSuffixes, '');
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

/** The segments in the order of the log; other files, such as histories and partial segments, are left out. */
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

const comparePositions = (one: SegmentPosition, other: SegmentPosition): number =>
  one.timeline - other.timeline || one.number - other.number;

/** Number of the segment that contains a position such as `0/3000028`. */
export function segmentOfLsn(lsn: string, segmentBytes = usualWalSegmentBytes): number {
  const [high, low] = lsn.split('/').map((hex) => Number.parseInt(hex, 16)) as [number, number];
  return high * (2 ** 32 / segmentBytes) + Math.floor(low / segmentBytes);
}

/** The name that PostgreSQL gives to a segment. */
export function walName(timeline: number, number: number, segmentBytes = usualWalSegmentBytes): string {
  const perId = 2 ** 32 / segmentBytes;
  return [timeline, Math.floor(number / perId), number % perId]
    .map((part) => part.toString(16).toUpperCase().padStart(8, '0'))
    .join('');
}

/**
 * The time up to which everything that the server has written is there, if this is the segment in which the server's position is.
 * Another server has segments of the same names.
 */
export function wholeUntil(
  last: Pick<Segment, 'name' | 'content'> | undefined,
  server: ArchivedLog | undefined,
): number | undefined {
  if (!last || server?.archived === undefined || archivedName(last.name) !== server.archived)
    return undefined;
  const { wal, binlog, bytes = 0 } = last.content ?? {};
  const isOfAnother = differ(wal?.systemId, server.identity) || differ(binlog?.toGtids, server.archivedGtids);
  // The server may have begun its log again: a longer file is not the one that it writes now.
  const isOther = server.archivedBytes !== undefined && bytes !== server.archivedBytes;
  return isOfAnother || isOther ? undefined : server.wholeUntilMs;
}

/** Whether both are known, and are not the same. */
const differ = (one: string | undefined, other: string | undefined) =>
  one !== undefined && other !== undefined && one !== other;
