import * as z from 'zod';
import { interval, parsedAs, withinInterval } from '../../core/text-formats.ts';
import { replicationBlock } from '../replication/block.ts';
import { asks } from './command.ts';
import type { DomainsOptions } from './options.ts';

const usualTimeoutMs = 10_000;

const describeBlock = () =>
  z
    .strictObject({
      command: z
        .array(z.string())
        .min(1)
        .describe(
          'The call that describes a domain; {domain} stands for its name, {cluster} and {address} for each cluster.',
        ),
      interval: z.string(interval.fault).transform(parsedAs(interval)).prefault('60s'),
      timeout: z
        .string(interval.fault)
        .transform(parsedAs(interval))
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
    }));

/** Without `{domain}` the command describes one domain, whichever is asked for. */
function tellsDomainsApart({ watch, describe }: { watch?: unknown; describe?: unknown }): boolean {
  const { command } = (describe ?? {}) as { command?: unknown };
  if (!Array.isArray(watch) || !Array.isArray(command)) return true;
  return new Set(watch).size < 2 || asks(command.map(String)).domain;
}

/** `domains` (CONTRACT, Configuration). */
export const domainsBlock = () =>
  z
    .strictObject({
      watch: z.array(z.string().min(1)).default([]).describe('Names of the domains to look at.'),
      describe: describeBlock().optional(),
      replication: replicationBlock().optional(),
    })
    .refine(tellsDomainsApart, {
      path: ['describe', 'command'],
      error: 'does not say which domain; put {domain} where its name belongs',
    }) satisfies z.ZodType<DomainsOptions>;
