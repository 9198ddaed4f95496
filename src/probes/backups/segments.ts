import type { ArchivedLog } from '../stores/store-report.ts';
import type { WalReading, WalRemainder } from './wal-segment.ts';

/** One archived piece of a write-ahead or binary log. */
export interface Segment {
  /** Its path below the directory of the archive: pgBackRest and Barman keep WAL in folders such as 0000000100000000. */
  name: string;
  /** When the file was last changed: no time in it can be later, and it may be of any time before. */
  endMs: number;
  sizeBytes: number;
  /** What was read of it; undefined while that is awaited. */
  content?: SegmentContent;
}

interface SegmentPosition {
  /** PostgreSQL's timeline; 0 for a binary log. */
  timeline: number;
  number: number;
}

export type LogKind = 'wal' | 'binlog';

/** Segments for the process that verifies them; JSON. */
export interface SegmentsToVerify {
  log: LogKind;
  /** In the log's order. */
  names: readonly string[];
  /** The segment before the first, where it was read, and what goes on from it. */
  after?: string;
  remainder?: WalRemainder;
  /** The newest of all, which the server may still write. */
  newest: string;
  /** Positions in files of a binary log at which backups were taken, by name of the file. */
  places?: Readonly<Record<string, readonly number[]>>;
}

/** What the content of one segment shows; JSON. */
export interface SegmentContent {
  /** What is damaged. */
  fault?: string;
  /** Why it cannot be verified. */
  unverified?: string;
  /** All that was committed before is in it, or in the segments before; ms since the epoch. */
  newestMs?: number;
  /** Bytes that were read. */
  bytes?: number;
  /** MD5 of the file, hexadecimal. */
  md5?: string;
  /** Name of the segment that was read before it, with which a record may go on. */
  after?: string;
  /** What was read of a segment of a write-ahead log. */
  wal?: Omit<WalReading, 'newestMs'>;
  binlog?: BinlogContent;
}

interface BinlogContent {
  /** Its last event says that it is complete. */
  isClosed: boolean;
  /** It ends within an event, which only the newest file may. */
  isCut?: boolean;
  /** MariaDB's positions before and after it, `DOMAIN-NUMBER` with commas. */
  fromGtids?: string;
  toGtids?: string;
  /** MariaDB's positions, `DOMAIN-SERVER-NUMBER`, at the places that were asked for, `''` where there are none; null where no event begins. */
  places?: Readonly<Record<number, string | null>>;
}

/** A place in a binary log. */
export interface BinlogPlace {
  file: string;
  position: number;
  /** MariaDB's positions there, `DOMAIN-SERVER-NUMBER` with commas, where they are known. */
  gtids?: string;
}

/** `initdb --wal-segsize` without an argument. */
export const usualWalSegmentBytes = 16 * 1024 * 1024;

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

const comparePositions = (one: SegmentPosition, other: SegmentPosition): number =>
  one.timeline - other.timeline || one.number - other.number;

/** Number of the segment that holds a position such as `0/3000028`. */
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

/** Everything that the server has written until then is there, if this is the segment where it is. */
export function wholeUntil(
  last: Pick<Segment, 'name' | 'content'> | undefined,
  server: ArchivedLog | undefined,
): number | undefined {
  if (!last || server?.archived === undefined || archivedName(last.name) !== server.archived)
    return undefined;
  return (last.content?.bytes ?? 0) >= (server.archivedBytes ?? 0) ? server.wholeUntilMs : undefined;
}
