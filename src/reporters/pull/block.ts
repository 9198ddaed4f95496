import * as z from 'zod';
import type { ListenerAuth, ListenerTls } from '../../core/access.ts';
import { ascending, listenAddress, parsedAs } from '../../core/text-formats.ts';
import { defaultBounds } from '../../core/value-stores.ts';

/** `pullmetrics` (spec, Metrics configuration), defaults filled in. */
export interface PullOptions {
  /** host:port; port 0 selects a free port. */
  listenAddress: string;
  timerType: 'histogram' | 'summary';
  /** Upper bounds in seconds for distributions the agent builds itself. */
  defaultHistogramBuckets: readonly number[];
  /** Whether OpenMetrics 1.0 is negotiated; text 0.0.4 otherwise. */
  openMetrics: boolean;
}

/** Upper bounds of a histogram without +Inf. */
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

/** `pullmetrics` (spec, Metrics configuration; CONTRACT, HTTP). */
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
