import * as z from 'zod';
import { interval, reading, withinInterval } from '../../core/written.ts';
import type { DomainsOptions } from './options.ts';

const usualTimeoutMs = 10_000;

/** `domains` (CONTRACT, Configuration). */
export const domainsBlock = () =>
  z.strictObject({
    watch: z.array(z.string().min(1)).default([]).describe('Names of the domains to look at.'),
    describe: z
      .strictObject({
        command: z
          .array(z.string())
          .min(1)
          .describe('The call that describes a domain; {domain} stands for its name.'),
        interval: z.string(interval.fault).transform(reading(interval)).prefault('60s'),
        timeout: z
          .string(interval.fault)
          .transform(reading(interval))
          .optional()
          .describe('Default: 10s, or the interval if that is shorter.'),
      })
      .refine(withinInterval.holds, {
        when: ({ value }) => typeof value === 'object' && value !== null,
        path: ['timeout'],
        error: withinInterval.fault,
      })
      .transform(({ command, interval: intervalMs, timeout }) => ({
        command,
        intervalMs,
        timeoutMs: withinInterval.timeoutMs(timeout, usualTimeoutMs, intervalMs),
      }))
      .optional(),
  }) satisfies z.ZodType<DomainsOptions>;
