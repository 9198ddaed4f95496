import type { LineDropReason, SkipReason } from '../../../core/reasons.ts';
import type { Fields } from './fields.ts';

/** Counts what a line was. `lineBytes` is all it takes in the file, newline and wrapping included. */
export interface LineTally {
  entry(fields: Fields, lineBytes: number): void;
  /** A line that belongs to the entry before it. */
  continuation(lineBytes: number): void;
  blank(lineBytes: number): void;
  dropped(reason: LineDropReason, lineBytes: number): void;
  /** Bytes that are part of no line. */
  skipped(reason: SkipReason, bytes: number): void;
  /** Hands in what was only gathered so far; called before anybody may look. */
  settle(): void;
}

/** The tally of one file: where several roles share it, an entry's role is also that of its continuation. */
export interface FileTally extends LineTally {
  /** Role of the entry before, '' if there is none or only one role can be; given back after a restart. */
  role: string;
}
