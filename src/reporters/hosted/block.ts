import * as z from 'zod';
import type { ClientAuth, ClientTls, Secret } from '../../core/access.ts';
import { interval, parsedAs, span, webAddress } from '../../core/text-formats.ts';

/** `hostedmetrics`, defaults filled in. */
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
/** The path that OTLP/HTTP defines (opentelemetry.io/docs/specs/otlp, OTLP/HTTP Request); remote write defines none. */
const otlpPath = '/v1/metrics';
const missingPath =
  'no path; use the address of the remote write endpoint, such as https://metrics.example.com/api/v1/write';

const hasPath = (address: string): boolean => new URL(address).pathname !== '/';

/** A request to `/` would be answered with 404, and every batch dropped. */
function endpointOf(protocol: HostedOptions['protocol'], address: string): string {
  if (protocol !== 'otlp' || hasPath(address)) return address;
  const url = new URL(address);
  url.pathname = otlpPath;
  return url.href;
}

const dayMs = 86_400_000;
/** No warning from this interval on: shorter intervals are rarely intended. */
const usualIntervalMs = 10_000;

/**
 * A warning for a reporting interval that makes many samples, with their number a day; undefined for 10 s and more.
 * `series`: how many series are reported, as far as this is known.
 */
export function volumeWarning(intervalMs: number, series = 1_000): string | undefined {
  if (intervalMs >= usualIntervalMs) return undefined;
  const daily = (everyMs: number): string =>
    Math.round((dayMs / everyMs) * series).toLocaleString('en-US', {
      notation: 'compact',
      maximumFractionDigits: 1,
    });
  return (
    `every ${intervalMs} ms makes ${daily(intervalMs)} samples a day of ${series.toLocaleString('en-US')} series ` +
    `(15s: ${daily(15_000)}); hosted platforms bill by samples, set 10s or more`
  );
}

const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** `hostedmetrics` (CONTRACT, Configuration). */
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
        .describe('Sent with each request; values are secrets.'),
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
    .refine(({ protocol, endpoint: address }) => protocol === 'otlp' || hasPath(address), {
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
