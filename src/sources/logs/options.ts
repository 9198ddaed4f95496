/** One user rule over log entries (docs/how-to/collect.md, Logs). */
export interface LogRule {
  /** Name of the metric. */
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help?: string;
  /** Top-level fields and the values they must have, all of them; a list matches any of its values. */
  match?: Readonly<Record<string, string | number | boolean | readonly (string | number | boolean)[]>>;
  /** Field that holds the number. Counter without it: 1 per entry. Gauge and histogram need it. */
  value?: string;
  /** Maps a label name to the field with its value. */
  labels?: Readonly<Record<string, string>>;
  /** Idle time after which a series of this rule goes; never if left out. */
  expireMs?: number;
  /** Histogram: upper bounds, ascending; default: the spec's. */
  buckets?: readonly number[];
}

export type LogEncoding = 'auto' | 'json' | 'console';
export type ContainerFormat = 'auto' | 'none' | 'cri' | 'docker';

/** `services.<service>.logs`, defaults filled in. */
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
