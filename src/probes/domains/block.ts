import * as z from 'zod';
import { type ReplicationOptions, replicationBlock } from '../replication/block.ts';
import { timedBlock } from '../timing-block.ts';
import { placeholdersIn } from './description.ts';

/** How a domain is described. */
export interface DescribeOptions {
  /**
   * Command of the service's client. `{domain}` in an argument stands for the domain's name. With `{cluster}` or
   * `{address}` (name and rpcAddress of a cluster of the group) it runs once per cluster, and the views are compared.
   */
  command: readonly string[];
  intervalMs: number;
  timeoutMs: number;
}

/** `domains`, defaults filled in. */
export interface DomainsOptions {
  /** Names of the domains to check. */
  watch: readonly string[];
  describe?: DescribeOptions;
  /** Metrics that replication is read from. Default: those that real services send. */
  replication?: ReplicationOptions;
}

const describeBlock = (): z.ZodType<DescribeOptions> =>
  timedBlock(
    {
      command: z
        .array(z.string())
        .min(1)
        .describe(
          'Command that describes a domain. {domain} stands for its name, {cluster} and {address} for each cluster.',
        ),
    },
    { interval: '60s', timeoutMs: 10_000 },
  );

/** A command without `{domain}` always describes the same domain. */
function tellsDomainsApart({ watch, describe }: { watch?: unknown; describe?: unknown }): boolean {
  const { command } = (describe ?? {}) as { command?: unknown };
  if (!Array.isArray(watch) || !Array.isArray(command)) return true;
  return new Set(watch).size < 2 || placeholdersIn(command.map(String)).domain;
}

/** `domains` (CONTRACT, Configuration). */
export const domainsBlock = () =>
  z
    .strictObject({
      watch: z.array(z.string().min(1)).default([]).describe('Names of the domains to check.'),
      describe: describeBlock().optional().describe('How the agent gets the description of a domain.'),
      replication: replicationBlock().optional(),
    })
    .refine(tellsDomainsApart, {
      path: ['describe', 'command'],
      error: 'does not say which domain; put {domain} where its name belongs',
    })
    .describe(
      'Domains whose clusters, failovers and archival are watched.',
    ) satisfies z.ZodType<DomainsOptions>;
