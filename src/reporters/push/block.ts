import * as z from 'zod';
import { dialAddress, interval, parsedAs } from '../../core/text-formats.ts';

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

/** `pushmetrics` (spec, Metrics configuration); without `flushInterval` the block's `reportingInterval` counts. */
export const pushBlock = () =>
  z
    .strictObject({
      hostPort: z
        .string(dialAddress.fault)
        .transform(parsedAs(dialAddress))
        .describe('host:port of the aggregator.'),
      prefix: z.string().default('').describe('In front of the block’s own prefix.'),
      flushInterval: z.string(interval.fault).transform(parsedAs(interval)).optional(),
      flushBytes: z.int().min(64).max(65_507).default(1432).describe('Bytes of one datagram at most.'),
      tagFormat: z.enum(tagFormats).default('suffix'),
    })
    .transform(({ flushInterval, ...rest }): Omit<PushOptions, 'flushIntervalMs'> & Partial<PushOptions> => ({
      ...rest,
      flushIntervalMs: flushInterval,
    }))
    .describe('Datagrams to an aggregator.');
