export const tagFormats = ['suffix', 'dogstatsd', 'influx', 'none'] as const;
export type TagFormat = (typeof tagFormats)[number];

/** `pushmetrics` (spec, Metrics configuration), defaults filled in. */
export interface PushOptions {
  /** host:port of the aggregator. */
  hostPort: string;
  /** In front of the block's own prefix. */
  prefix: string;
  /** The block's `reportingInterval` unless set. */
  flushIntervalMs: number;
  /** Bytes of one datagram at most. */
  flushBytes: number;
  tagFormat: TagFormat;
}
