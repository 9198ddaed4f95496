import * as z from 'zod';
import type { ClientAuth, ClientTls } from '../../core/access.ts';
import { interval, parsedAs, type TextFormat, webAddress, withinInterval } from '../../core/text-formats.ts';
import type { HealthOptions } from './options.ts';

const target = webAddress(['http', 'https', 'grpc', 'grpcs', 'tcp'], 'http://127.0.0.1:7933/health');

/** Only the web has usual ports. */
const targetWithPort: TextFormat<string> = {
  fault: 'names no port; use the form grpc://127.0.0.1:7833',
  read(text) {
    const { protocol, port } = new URL(text);
    return port !== '' || protocol === 'http:' || protocol === 'https:' ? text : undefined;
  },
};

const usualTimeoutMs = 5000;

/** `services.<service>.health`: a URL, or a map with one. */
export const healthBlock = (access: { tls: z.ZodType<ClientTls>; auth: z.ZodType<ClientAuth> }) => {
  const full = z
    .strictObject({
      url: z.string(target.fault).transform(parsedAs(target)).transform(parsedAs(targetWithPort)),
      interval: z.string(interval.fault).transform(parsedAs(interval)).prefault('15s'),
      timeout: z
        .string(interval.fault)
        .transform(parsedAs(interval))
        .optional()
        .describe('Default: 5s, or the interval if that is shorter.'),
      failureThreshold: z
        .int()
        .min(1)
        .max(100)
        .default(3)
        .describe('Failures in a row that make the role down.'),
      successThreshold: z
        .int()
        .min(1)
        .max(100)
        .default(1)
        .describe('Successes in a row that make it up again.'),
      tls: access.tls.optional(),
      auth: access.auth.optional(),
    })
    .refine(withinInterval.holds, {
      when: ({ value }) => typeof value === 'object' && value !== null,
      path: ['timeout'],
      error: withinInterval.fault,
    })
    .transform(
      ({ interval: intervalMs, timeout, ...rest }): HealthOptions => ({
        ...rest,
        intervalMs,
        timeoutMs: withinInterval.timeoutMs(timeout, usualTimeoutMs, intervalMs),
      }),
    );
  const short = z
    .string()
    .transform(parsedAs(target))
    .transform(parsedAs(targetWithPort))
    .transform((url) => ({ url }))
    .pipe(full);
  return z.union([short, full]).describe('The role’s health endpoint: a URL, or a map with one.');
};
