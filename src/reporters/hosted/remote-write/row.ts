/** A label's name or value, or a help text, encoded once and shared by all rows that have it. */
export interface Word {
  readonly bytes: Buffer;
  /** The body whose table of symbols has it, and its place there. */
  owner: object | undefined;
  ref: number;
}

export const wordOf = (bytes: Buffer): Word => ({ bytes, owner: undefined, ref: 0 });

/** Values of `Metadata.MetricType`, the same in both versions. */
export const metricTypes = { untyped: 0, counter: 1, gauge: 2, histogram: 3, summary: 5 } as const;

/** One sample of one series, as remote write knows it. */
export interface Row {
  /** Names and values by turns, sorted by name, `__name__` among them. */
  labels: readonly Word[];
  type: number;
  help: Word;
  value: number;
  /** The series has ended; `value` does not count. */
  stale: boolean;
  timeMs: number;
  /** When its counter began; 0 for what is no counter. */
  startMs: number;
}
