import * as z from 'zod';
import { interval, parsedAs, withinInterval } from '../core/text-formats.ts';

/** How often a probe runs, and how long one run may take. */
interface Timing {
  intervalMs: number;
  /** Never longer than the interval. */
  timeoutMs: number;
}

/** The schema of an `interval` key. */
export const intervalValue = (usual: string) =>
  z.string(interval.fault).transform(parsedAs(interval)).prefault(usual).describe('Time between two checks.');

/**
 * The schema of a strict map with the keys of `shape`, `interval` and `timeout`. Without `timeout` the usual timeout applies, or
 * the interval if that is shorter; a timeout longer than the interval is refused.
 */
export function timedBlock<Shape extends z.ZodRawShape>(
  shape: Shape,
  usual: { interval: string; timeoutMs: number },
): z.ZodType<z.output<z.ZodObject<Shape>> & Timing> {
  const block = z
    .strictObject({
      ...(shape as z.ZodRawShape),
      interval: intervalValue(usual.interval),
      timeout: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .optional()
        .describe(
          `Time limit of one check. Default: ${usual.timeoutMs / 1000}s, or the interval if that is shorter.`,
        ),
    })
    .refine(withinInterval.holds, {
      when: ({ value }) => typeof value === 'object' && value !== null,
      path: ['timeout'],
      error: withinInterval.fault,
    })
    .transform(({ interval: intervalMs, timeout, ...rest }) => ({
      ...rest,
      intervalMs,
      timeoutMs: withinInterval.timeoutMs(timeout, usual.timeoutMs, intervalMs),
    }));
  return block as never;
}
