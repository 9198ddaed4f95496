import * as z from 'zod';
import { placeholders } from '../../core/text-formats.ts';
import { intervalValue, timedBlock } from '../timing-block.ts';
import { placeholdersIn } from './description.ts';

const lagUnits = ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'] as const;
type LagUnit = (typeof lagUnits)[number];

/** A scraped metric, and its labels that name clusters. */
export interface ReadingPlace {
  /** Name in the catalog, or else the sanitized name that the service sends. */
  metric: string;
  sourceLabel?: string;
  targetLabel?: string;
}

export interface LagPlace extends ReadingPlace {
  unit: LagUnit;
}

/**
 * The options of `domains.replication`, with defaults filled in. Without a configured metric, the metrics that real services send
 * are tried.
 */
export interface ReplicationOptions {
  intervalMs: number;
  /** The gauge with the age of the oldest change that a cluster has not applied yet. */
  lag?: LagPlace;
  /** The counter of tasks that this cluster applied. */
  applied?: ReadingPlace;
  /** The counter of tasks that failed. */
  failures?: ReadingPlace;
}

const label = (whose: string) =>
  z.string().min(1).optional().describe(`Label that names the cluster that changes ${whose}.`);

const place = () => ({
  metric: z.string().min(1).describe('Name of the metric, in the catalog or as the service sends it.'),
  sourceLabel: label('come from'),
  targetLabel: label('go to'),
});

/** The schema of `domains.replication`: the scraped metrics with lag, progress and failures. */
const replicationBlock = () =>
  z
    .strictObject({
      interval: intervalValue('15s'),
      lag: z
        .strictObject({
          ...place(),
          unit: z.enum(lagUnits).default('seconds').describe('Unit of the metric.'),
        })
        .optional()
        .describe('Gauge of the replication lag. Default: the metrics of known services.'),
      applied: z.strictObject(place()).optional().describe('Counter of replication tasks applied.'),
      failures: z.strictObject(place()).optional().describe('Counter of replication tasks that failed.'),
    })
    .transform(({ interval: intervalMs, ...rest }): ReplicationOptions => ({ intervalMs, ...rest }))
    .describe('Scraped metrics that replication is read from.');

/** How a domain is described. */
interface DescribeOptions {
  /**
   * The command of the service's client. `{domain}` in an argument stands for the domain's name. With `{cluster}` or `{address}`
   * (name and rpcAddress of a cluster of the group) the command runs once per cluster, and the views are compared.
   */
  command: readonly string[];
  intervalMs: number;
  timeoutMs: number;
}

/** The options of `domains`, with defaults filled in. */
export interface DomainsOptions {
  /** Names of the domains to check. */
  watch: readonly string[];
  describe?: DescribeOptions;
  /** Metrics from which replication is read. Default: those that real services send. */
  replication?: ReplicationOptions;
}

const commandPlaces = placeholders(['domain', 'cluster', 'address']);

const describeBlock = (): z.ZodType<DescribeOptions> =>
  timedBlock(
    {
      command: z
        .array(z.string().refine(commandPlaces.holds, commandPlaces.fault))
        .min(1)
        .describe(
          'Command that describes a domain. {domain} stands for its name, {cluster} and {address} for each cluster.',
        ),
    },
    { interval: '60s', timeoutMs: 10_000 },
  );

/** Whether each domain is described by itself: a command without `{domain}` always describes the same domain. */
function distinguishesDomains({ watch, describe }: { watch?: unknown; describe?: unknown }): boolean {
  const { command } = (describe ?? {}) as { command?: unknown };
  if (!Array.isArray(watch) || !Array.isArray(command)) return true;
  return new Set(watch).size < 2 || placeholdersIn(command.map(String)).domain;
}

/** The schema of `domains` (docs/reference/configuration.md). */
export const domainsBlock = () =>
  z
    .strictObject({
      watch: z.array(z.string().min(1)).default([]).describe('Names of the domains to check.'),
      describe: describeBlock().optional().describe('How the agent gets the description of a domain.'),
      replication: replicationBlock().optional(),
    })
    .refine(distinguishesDomains, {
      path: ['describe', 'command'],
      error: 'does not say which domain; put {domain} where its name belongs',
    })
    .describe(
      'Domains whose clusters, failovers and archival are watched.',
    ) satisfies z.ZodType<DomainsOptions>;
