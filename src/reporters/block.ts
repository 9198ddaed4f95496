import * as z from 'zod';
import type { ClientAuth, ClientTls, ListenerAuth, ListenerTls, Secret } from '../core/access.ts';
import { defaultBounds } from '../core/registry/value-stores.ts';
import {
  ascending,
  interval,
  listenAddress,
  parsedAs,
  span,
  statsdAddress,
  webAddress,
} from '../core/text-formats.ts';

/** The options of `pullmetrics` (spec, Metrics configuration), with defaults filled in. */
export interface PullOptions {
  /** host:port; port 0 selects a free port. */
  listenAddress: string;
  timerType: 'histogram' | 'summary';
  /** Upper bounds, in seconds, for distributions that the agent builds itself. */
  defaultHistogramBuckets: readonly number[];
  /** Whether OpenMetrics 1.0 is negotiated; otherwise the format is text 0.0.4. */
  openMetrics: boolean;
}

/** The schema of the upper bounds of a histogram, without +Inf. */
const buckets = z
  .array(z.number())
  .min(1)
  .max(200)
  .superRefine(
    (bounds, context) => {
      const at = ascending.brokenAt(bounds);
      if (at >= 0) context.addIssue({ code: 'custom', path: [at], message: ascending.fault });
    },
    { when: ({ value }) => Array.isArray(value) },
  );

/** The schema of `pullmetrics` (spec, Metrics configuration; docs/http-api.md). */
export const pullBlock = (access: { tls: z.ZodType<ListenerTls>; auth: z.ZodType<ListenerAuth> }) =>
  z
    .strictObject({
      listenAddress: z
        .string(listenAddress.fault)
        .transform(parsedAs(listenAddress))
        .describe('host:port of the scrape endpoint; port 0 selects a free port.'),
      timerType: z
        .enum(['histogram', 'summary'])
        .default('histogram')
        .describe('Type that timers, histograms and distributions received by statsd become.'),
      defaultHistogramBuckets: buckets.default([...defaultBounds]).describe('Upper bounds in seconds.'),
      openMetrics: z.boolean().default(false).describe('Whether OpenMetrics 1.0 is negotiated.'),
      tls: access.tls.optional(),
      auth: access.auth.optional(),
    })
    .describe('A scrape endpoint.') satisfies z.ZodType<PullOptions>;

const tagFormats = ['suffix', 'dogstatsd', 'influx', 'none'] as const;
export type TagFormat = (typeof tagFormats)[number];

/** The options of `pushmetrics` (spec, Metrics configuration), with defaults filled in. */
export interface PushOptions {
  /** host:port of the aggregator. */
  hostPort: string;
  /** Prefix that is put before the prefix of the block. */
  prefix: string;
  /** Default: the block's `reportingInterval`. */
  flushIntervalMs: number;
  /** Largest size of one datagram in bytes. */
  flushBytes: number;
  tagFormat: TagFormat;
}

/** The schema of `pushmetrics` (spec, Metrics configuration); without `flushInterval` the block's `reportingInterval` is used. */
export const pushBlock = () =>
  z
    .strictObject({
      hostPort: z
        .string(statsdAddress.fault)
        .transform(parsedAs(statsdAddress))
        .describe('host:port of the aggregator.'),
      prefix: z.string().default('').describe('Prefix that is put before the prefix of the block.'),
      flushInterval: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .optional()
        .describe('How often values are sent. Default: reportingInterval of the block.'),
      flushBytes: z
        .int()
        .min(64)
        .max(65_507)
        .default(1432)
        .describe('Largest size of one datagram in bytes.'),
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

/** The options of `hostedmetrics`, with defaults filled in. */
export interface HostedOptions {
  protocol: 'otlp' | 'remotewrite';
  endpoint: string;
  headers: Readonly<Record<string, Secret>>;
  auth?: ClientAuth;
  tls?: ClientTls;
  timeoutMs: number;
  /** Limits of the queue; the oldest batches are dropped first. */
  queue: { maxBytes: number; maxAgeMs: number };
}

const endpoint = webAddress(['http', 'https'], 'https://metrics.example.com/v1/metrics');
/** The path that OTLP/HTTP defines (opentelemetry.io/docs/specs/otlp, OTLP/HTTP Request). Remote write defines no path. */
const otlpPath = '/v1/metrics';
const missingPath =
  'no path; use the address of the remote write endpoint, such as https://metrics.example.com/api/v1/write';

/** Whether an address has a path, including the root: a user who writes the slash means it. */
const isPathWritten = (address: string): boolean => /^[a-z]+:\/\/[^/?#]+\//i.test(address);
const hasPath = (address: string): boolean => new URL(address).pathname !== '/';

/**
 * The address of requests. For OTLP the usual path is added to an address without a path, because a request to `/` would be
 * answered with 404, and every batch dropped.
 */
function endpointOf(protocol: HostedOptions['protocol'], address: string): string {
  if (protocol !== 'otlp' || hasPath(address)) return address;
  const url = new URL(address);
  url.pathname = otlpPath;
  return url.href;
}

const dayMs = 86_400_000;
/** From this interval on there is no warning; shorter intervals are rarely intended. */
const usualIntervalMs = 10_000;

/**
 * A warning about a reporting interval that produces many samples, with their number per day; undefined for 10 s and more.
 * `series` is the number of series that are reported, as far as it is known.
 */
export function volumeWarning(intervalMs: number, series = 1_000): string | undefined {
  if (intervalMs >= usualIntervalMs) return undefined;
  const daily = (everyMs: number): string =>
    Math.round((dayMs / everyMs) * series).toLocaleString('en-US', {
      notation: 'compact',
      maximumFractionDigits: 1,
    });
  return (
    `a report every ${intervalMs} ms makes ${daily(intervalMs)} samples a day of ${series.toLocaleString('en-US')} series ` +
    `(15s: ${daily(15_000)}), and hosted platforms bill by samples; set 10s or more`
  );
}

const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** The schema of `hostedmetrics` (docs/reference/configuration.md). */
export const hostedBlock = (access: {
  secret: z.ZodType<Secret>;
  tls: z.ZodType<ClientTls>;
  auth: z.ZodType<ClientAuth>;
}) =>
  z
    .strictObject({
      protocol: z.enum(['otlp', 'remotewrite']).describe('OTLP over HTTP, or Prometheus remote write.'),
      endpoint: z
        .string(endpoint.fault)
        .transform(parsedAs(endpoint))
        .describe('URL of the receiver. An OTLP endpoint without a path gets /v1/metrics.'),
      headers: z
        .record(z.string().regex(headerName, 'not a header name; use letters, digits and -'), access.secret)
        .default({})
        .describe(
          'HTTP headers by name, sent with each request, such as the key of a platform. Values are secrets.',
        ),
      auth: access.auth.optional(),
      tls: access.tls.optional(),
      timeout: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .prefault('10s')
        .describe('How long one request may take.'),
      queue: z
        .strictObject({
          maxBytes: z
            .int()
            .min(1_048_576)
            .default(268_435_456)
            .describe('Limit of the queue on disk in bytes; the oldest batches are dropped first.'),
          maxAge: z
            .string(span.fault)
            .transform(parsedAs(span))
            .prefault('2h')
            .describe('Older batches are dropped.'),
        })
        .prefault({})
        .describe('Batches that wait for the receiver, in the state directory.'),
    })
    .refine(({ protocol, endpoint: address }) => protocol === 'otlp' || isPathWritten(address), {
      path: ['endpoint'],
      error: missingPath,
    })
    .transform(
      ({ timeout, queue, ...rest }): HostedOptions => ({
        ...rest,
        endpoint: endpointOf(rest.protocol, rest.endpoint),
        timeoutMs: timeout,
        queue: { maxBytes: queue.maxBytes, maxAgeMs: queue.maxAge },
      }),
    )
    .describe('Sends batches to a hosted platform.');
