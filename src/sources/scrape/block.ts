import * as z from 'zod';
import type { ClientAuth, ClientTls } from '../../core/access.ts';
import { interval, parsedAs, webAddress, withinInterval } from '../../core/text-formats.ts';

/** Limits of a page. A page that exceeds a limit is discarded. */
export interface ScrapeLimits {
  /** Maximum size of the page in bytes, after decompression. */
  bodyBytes: number;
  samples: number;
  /** Maximum size in bytes of a label's value, or of any name. */
  labelBytes: number;
}

/** The options of `services.<service>.scrape`, with defaults filled in. */
export interface ScrapeOptions {
  url: string;
  intervalMs: number;
  timeoutMs: number;
  /** For an `https:` target. Files are read again for each new connection. */
  tls?: ClientTls;
  auth?: ClientAuth;
  limits: ScrapeLimits;
  /** The service's own prefix: removed from names, with the underscore after it. */
  prefix?: string;
}

export const scrapeDefaults = {
  intervalMs: 15_000,
  timeoutMs: 10_000,
  limits: { bodyBytes: 32 * 1024 * 1024, samples: 500_000, labelBytes: 8192 },
} as const;

const target = webAddress(['http', 'https'], 'http://127.0.0.1:8000/metrics');

const limits = z
  .strictObject({
    bodyBytes: z
      .int()
      .min(1)
      .default(scrapeDefaults.limits.bodyBytes)
      .describe('Maximum size of the page in bytes, uncompressed.'),
    samples: z
      .int()
      .min(1)
      .default(scrapeDefaults.limits.samples)
      .describe('Maximum number of samples of the page.'),
    labelBytes: z
      .int()
      .min(1)
      .default(scrapeDefaults.limits.labelBytes)
      .describe('Maximum size of a label’s value, or of a name, in bytes.'),
  })
  .prefault({})
  .describe('Limits of a page; one that exceeds them is discarded.');

/** The schema of `services.<service>.scrape`: a URL, or a map with a URL. */
export const scrapeBlock = (access: { tls: z.ZodType<ClientTls>; auth: z.ZodType<ClientAuth> }) => {
  const full = z
    .strictObject({
      url: z.string(target.fault).transform(parsedAs(target)).describe('URL of the page.'),
      interval: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .prefault(`${scrapeDefaults.intervalMs / 1000}s`)
        .describe('Time between two scrapes.'),
      timeout: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .optional()
        .describe('Time limit of a scrape. Default: 10s, or the interval if that is shorter.'),
      tls: access.tls.optional(),
      auth: access.auth.optional(),
      prefix: z
        .string()
        .regex(/^\w+$/, 'not the beginning of a metric name; use letters, digits and _')
        .optional()
        .describe('The service’s own metrics.prefix, which is removed from every name.'),
      limits,
    })
    .refine(withinInterval.holds, {
      when: ({ value }) => typeof value === 'object' && value !== null,
      path: ['timeout'],
      error: withinInterval.fault,
    })
    .transform(
      ({ interval: intervalMs, timeout, ...rest }): ScrapeOptions => ({
        ...rest,
        intervalMs,
        timeoutMs: withinInterval.timeoutMs(timeout, scrapeDefaults.timeoutMs, intervalMs),
      }),
    );
  const short = z
    .string(target.fault)
    .transform(parsedAs(target))
    .transform((url) => ({ url }))
    .pipe(full);
  return z
    .union([short, full])
    .describe('The role’s own metrics endpoint: a URL, or a map with the key url.');
};
