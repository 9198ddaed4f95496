/** One rule of the user for log entries (docs/how-to/collect.md, Logs). */
export interface LogRule {
  /** Name of the metric. */
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help?: string;
  /** Top-level fields and the values that all of them must have; a list matches any of its values. */
  match?: Readonly<Record<string, string | number | boolean | readonly (string | number | boolean)[]>>;
  /** The field that holds the number. A counter without it counts 1 per entry; a gauge and a histogram need it. */
  value?: string;
  /** Maps a label name to the field with its value. */
  labels?: Readonly<Record<string, string>>;
  /** Idle time after which a series of this rule is released; never if left out. */
  expireMs?: number;
  /** The upper bounds of a histogram, ascending; default: the spec's. */
  buckets?: readonly number[];
}

export type LogEncoding = 'auto' | 'json' | 'console';
export type ContainerFormat = 'auto' | 'none' | 'cri' | 'docker';

/** The options of `services.<service>.logs`, with defaults filled in. */
export interface LogsOptions {
  /** Glob patterns, absolute or relative to the working directory; `-` alone is standard input. */
  paths: readonly string[];
  exclude: readonly string[];
  encoding: LogEncoding;
  container: ContainerFormat;
  levelKey: string;
  roleField: string;
  startAt: 'end' | 'beginning';
  rules: readonly LogRule[];
}
