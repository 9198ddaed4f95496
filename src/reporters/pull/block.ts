import * as z from 'zod';
import type { ListenerAuth, ListenerTls } from '../../core/access.ts';
import { defaultBounds } from '../../core/histogram.ts';
import { ascending, listenAddress, reading } from '../../core/written.ts';
import type { PullOptions } from './options.ts';

/** Upper bounds of a histogram without +Inf. */
const buckets = z
  .array(z.number())
  .min(1)
  .max(200)
  .refine(ascending.holds, {
    when: ({ value }) => Array.isArray(value),
    error: 'not ascending; use each bound once, the smallest first',
  });

/** `pullmetrics` (spec, Metrics configuration; CONTRACT, HTTP). */
export const pullBlock = (access: { tls: z.ZodType<ListenerTls>; auth: z.ZodType<ListenerAuth> }) =>
  z
    .strictObject({
      listenAddress: z
        .string(listenAddress.fault)
        .transform(reading(listenAddress))
        .describe('host:port of the scrape endpoint; port 0 asks for any free one.'),
      timerType: z.enum(['histogram', 'summary']).default('histogram'),
      defaultHistogramBuckets: buckets.default([...defaultBounds]).describe('Upper bounds in seconds.'),
      openMetrics: z.boolean().default(false).describe('Whether OpenMetrics 1.0 is negotiated.'),
      tls: access.tls.optional(),
      auth: access.auth.optional(),
    })
    .describe('A scrape endpoint.') satisfies z.ZodType<PullOptions>;
