import * as z from 'zod';
import { intervalValue } from '../timing-block.ts';

/** Units that a lag may be sent in. */
export const lagUnits = ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'] as const;
export type LagUnit = (typeof lagUnits)[number];

/** Where a number stands among the scraped metrics: the family, and the labels that name clusters. */
export interface ReadingPlace {
  /** In the catalog's words where it has one, else as it was sent, sanitized. */
  metric: string;
  sourceLabel?: string;
  targetLabel?: string;
}

export interface LagPlace extends ReadingPlace {
  unit: LagUnit;
}

/** `domains.replication`, defaults filled in; what is not there is looked for where real services have it. */
export interface ReplicationOptions {
  intervalMs: number;
  /** Gauge: age of the oldest change that a cluster has not taken yet. */
  lag?: LagPlace;
  /** Counter of tasks that this cluster applied. */
  applied?: ReadingPlace;
  /** Counter of tasks that failed. */
  failures?: ReadingPlace;
}

const label = (whose: string) =>
  z.string().min(1).optional().describe(`Label that names the cluster that changes ${whose}.`);

const place = () => ({
  metric: z
    .string()
    .min(1)
    .describe('Name of the metric, in the catalog’s words or as the service sends it.'),
  sourceLabel: label('come from'),
  targetLabel: label('go to'),
});

/** `domains.replication`: where lag, progress and failures stand among the scraped metrics. */
export const replicationBlock = () =>
  z
    .strictObject({
      interval: intervalValue('15s'),
      lag: z
        .strictObject({ ...place(), unit: z.enum(lagUnits).default('seconds') })
        .optional()
        .describe('Gauge of how far a cluster is behind. Default: what real services send.'),
      applied: z.strictObject(place()).optional().describe('Counter of replication tasks applied.'),
      failures: z.strictObject(place()).optional().describe('Counter of replication tasks that failed.'),
    })
    .transform(({ interval: intervalMs, ...rest }): ReplicationOptions => ({ intervalMs, ...rest }))
    .describe('Where replication shows in the scraped metrics.');
