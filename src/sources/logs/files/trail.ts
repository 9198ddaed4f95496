import type { LineSink } from '../sink.ts';
import type { FileStat } from './disk.ts';
import { type Mark, noMark } from './mark.ts';

/** Where a trail's file stands: under its own name, under a rotated one, or under none any more. */
export type Standing = 'live' | 'rotated' | 'unlinked';

/**
 * One generation of a log: the bytes of one file from its first to its last, whatever the file is called by
 * now. Everything that is counted of a generation is counted through its trail.
 */
export interface Trail {
  dev: bigint;
  ino: bigint;
  /** A rotated generation that is left only in compressed form; offsets are those of its plain bytes. */
  readonly compressed: boolean;
  /** The path that a pattern led to; generations that followed each other there are one lineage. */
  path: string;
  /** The path without links under which it was written. */
  home: string;
  /** Where the file was last seen. */
  real: string;
  /** Orders the generations of a lineage: an older one is drained before a younger one counts. */
  generation: number;

  /** First byte that is not part of a counted line. */
  offset: number;
  mark: Mark;
  /** Bytes after the offset that its sink has seen and not counted: an unfinished line. */
  restBytes: number;
  /** Those bytes, if they are few enough to be kept for the case that the file loses them. */
  rest: Buffer;
  /** Largest size at which the bytes before the offset were still the same. */
  size: number;
  mtimeNs: bigint;

  claimants: readonly string[];
  /** The names by which patterns led to it when the claimants were found out, NUL between them. */
  names: string;
  sink?: LineSink;
  /** What the sink held, until a sink is opened. */
  carry?: Uint8Array;

  /** The file as last looked at, not yet known to be the same. */
  nowSize: number;
  nowMtimeNs: bigint;
  standing: Standing;
  /** The path by which a pattern last led to it; empty if none does. */
  at: string;
  /** The look that last came across it by a pattern. */
  seenBy: number;
  /** The look that last held its beginning against the mark. */
  checkedBy: number;
  /** The look that has read it to its end. */
  drainedBy: number;
  /** Monotonic ms since which it cannot be found, though it may come back (a mount). */
  absentSinceMs?: number;
  /** Monotonic ms of the last change. */
  changedMs: number;
  /** Nothing more is expected of it; the unfinished line has been counted. */
  finished: boolean;
  fd?: number;
  /** Compressed files that turned out not to be this generation. */
  ruledOut?: ReadonlySet<string>;
  /** Its encoding for the snapshot, until something changes. */
  record?: Buffer;
}

/** Unfinished lines up to this many bytes are kept; a longer one is lost if its file is truncated. */
export const restKeptBytes = 4096;

export const noBytes = Buffer.alloc(0);

/** A trail that nothing has been read of. */
export function newTrail(
  at: { path: string; home: string; real: string },
  stat: Pick<FileStat, 'dev' | 'ino' | 'size' | 'mtimeNs'>,
  generation: number,
  claimants: readonly string[],
  compressed = false,
): Trail {
  return {
    dev: stat.dev,
    ino: stat.ino,
    compressed,
    ...at,
    generation,
    offset: 0,
    mark: noMark,
    restBytes: 0,
    rest: noBytes,
    size: 0,
    mtimeNs: stat.mtimeNs,
    claimants,
    names: '',
    sink: undefined,
    carry: undefined,
    nowSize: stat.size,
    nowMtimeNs: stat.mtimeNs,
    standing: 'live',
    at: '',
    seenBy: 0,
    checkedBy: 0,
    drainedBy: 0,
    absentSinceMs: undefined,
    changedMs: 0,
    finished: false,
    fd: undefined,
    ruledOut: undefined,
    record: undefined,
  };
}

/** Whether there may be something to read, or something else in the file than there was. */
export const isStale = (trail: Trail): boolean =>
  trail.compressed
    ? !trail.finished
    : trail.nowSize !== trail.offset + trail.restBytes || trail.nowMtimeNs !== trail.mtimeNs;
