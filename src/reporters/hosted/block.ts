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
  /** What an outage may cost on disk; oldest dropped first. */
  queue: { maxBytes: number; maxAgeMs: number };
}

const endpoint = webAddress(['http', 'https'], 'https://metrics.example.com/v1/metrics');
const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;

/** `hostedmetrics` (CONTRACT, Configuration). */
export const hostedBlock = (access: {
  secret: z.ZodType<Secret>;
  tls: z.ZodType<ClientTls>;
  auth: z.ZodType<ClientAuth>;
}) =>
  z
    .strictObject({
      protocol: z.enum(['otlp', 'remotewrite']),
      endpoint: z.string(endpoint.fault).transform(parsedAs(endpoint)),
      headers: z
        .record(z.string().regex(headerName, 'not a header’s name; use letters, digits and -'), access.secret)
        .default({})
        .describe('Sent with each request; values are secrets.'),
      auth: access.auth.optional(),
      tls: access.tls.optional(),
      timeout: z.string(interval.fault).transform(parsedAs(interval)).prefault('10s'),
      queue: z
        .strictObject({
          maxBytes: z
            .int()
            .min(1_048_576)
            .default(268_435_456)
            .describe('Bytes on disk at most; oldest dropped first.'),
          maxAge: z
            .string(span.fault)
            .transform(parsedAs(span))
            .prefault('2h')
            .describe('Older batches are dropped.'),
        })
        .prefault({}),
    })
    .transform(
      ({ timeout, queue, ...rest }): HostedOptions => ({
        ...rest,
        timeoutMs: timeout,
        queue: { maxBytes: queue.maxBytes, maxAgeMs: queue.maxAge },
      }),
    )
    .describe('Batches to a hosted platform.');
