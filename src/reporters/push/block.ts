import * as z from 'zod';
import { interval, parsedAs, statsdAddress } from '../../core/text-formats.ts';

export const tagFormats = ['suffix', 'dogstatsd', 'influx', 'none'] as const;
export type TagFormat = (typeof tagFormats)[number];

/** `pushmetrics` (spec, Metrics configuration), defaults filled in. */
export interface PushOptions {
  /** host:port of the aggregator. */
  hostPort: string;
  /** Added before the prefix of the block. */
  prefix: string;
  /** Default: the block's `reportingInterval`. */
  flushIntervalMs: number;
  /** Limit of one datagram in bytes. */
  flushBytes: number;
  tagFormat: TagFormat;
}

/** `pushmetrics` (spec, Metrics configuration); without `flushInterval` the block's `reportingInterval` is used. */
export const pushBlock = () =>
  z
    .strictObject({
      hostPort: z
        .string(statsdAddress.fault)
        .transform(parsedAs(statsdAddress))
        .describe('host:port of the aggregator.'),
      prefix: z.string().default('').describe('Added before the prefix of the block.'),
      flushInterval: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .optional()
        .describe('How often values are sent. Default: reportingInterval of the block.'),
      flushBytes: z.int().min(64).max(65_507).default(1432).describe('Limit of one datagram in bytes.'),
      tagFormat: z
        .enum(tagFormats)
        .default('suffix')
        .describe('How tags are written: in the name, as DogStatsD or InfluxDB writes them, or not at all.'),
    })
    .transform(({ flushInterval, ...rest }): Omit<PushOptions, 'flushIntervalMs'> & Partial<PushOptions> => ({
      ...rest,
      flushIntervalMs: flushInterval,
    }))
    .describe('Sends statsd datagrams to an aggregator.');
