import type { SkipReason } from '../../core/reasons.ts';

/**
 * Receives the bytes of one file in order and counts its lines. It never receives a byte twice, except for an unfinished line,
 * which is presented again together with what follows it.
 */
export interface LineSink {
  /**
   * Counts every complete line in `bytes[start, end)` and returns the index of the first byte that is not part of a counted line.
   * The next call begins with that byte. A line over the limit is consumed as it comes (the return value is `end`) and counted
   * once at its newline.
   */
  write(bytes: Buffer, start: number, end: number): number;
  /** The file is finished (deleted, truncated, or rotated away and drained): the remaining bytes are its last line. */
  finish(bytes: Buffer, start: number, end: number): void;
  /** Counts bytes that were passed over or deleted before they were read. */
  skip(reason: SkipReason, bytes: number): void;
  /** What the sink holds between two lines (joined partials, continuation), for the snapshot; undefined if it holds nothing. */
  state(): Uint8Array | undefined;
}

/** The file that a sink is for. */
export interface SinkFile {
  path: string;
  /** Services whose patterns lead to the file, in the configuration's order, selected or not. */
  claimants: readonly string[];
  state?: Uint8Array;
}

/**
 * Opens a sink for a file. A reload may add claimants to a file: it then opens a new sink with the unfinished line of the old
 * sink.
 */
export type OpenSink = (file: SinkFile) => LineSink;

/** Opens the sinks that count after a reload. */
export type OpenSinks = () => OpenSink | Promise<OpenSink>;
