import type { SkipReason } from '../../core/reasons.ts';

/**
 * Takes the bytes of one file in order and counts its lines. It never sees a byte twice, but for an
 * unfinished line, which is presented again with what follows it.
 */
export interface LineSink {
  /**
   * Counts every complete line in `bytes[start, end)` and returns the index of the first byte that is not
   * part of a counted line. Called again with those bytes first. A line over the limit is consumed as it
   * comes (the return value is `end`) and counted once at its newline.
   */
  write(bytes: Buffer, start: number, end: number): number;
  /** The file is finished (deleted, truncated, rotated away and drained): what is left is its last line. */
  finish(bytes: Buffer, start: number, end: number): void;
  /** Bytes that were passed over or deleted before they were read. */
  skip(reason: SkipReason, bytes: number): void;
  /** What it holds between two lines (joined partials, continuation), for the snapshot; undefined if nothing. */
  state(): Uint8Array | undefined;
}

/** Which file a sink is for. */
export interface SinkFile {
  path: string;
  /** Services whose patterns lead to the file, in the configuration's order, selected or not. */
  claimants: readonly string[];
  state?: Uint8Array;
}

/** Opens a sink for a file; the `claimants` of a file may grow on a reload, which opens a new sink with the unfinished line of the old one. */
export type OpenSink = (file: SinkFile) => LineSink;

/** Opens what a reload counts with from now on. */
export type OpenSinks = () => OpenSink | Promise<OpenSink>;
