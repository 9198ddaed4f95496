import * as z from 'zod';
import { intervalValue } from '../timing-block.ts';

/** Units of a lag metric. */
const lagUnits = ['seconds', 'milliseconds', 'microseconds', 'nanoseconds'] as const;
export type LagUnit = (typeof lagUnits)[number];

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

/** `domains.replication`, defaults filled in. Without a metric, those that real services send are tried. */
export interface ReplicationOptions {
  intervalMs: number;
  /** Gauge: age of the oldest change that a cluster has not applied yet. */
  lag?: LagPlace;
  /** Counter of tasks that this cluster applied. */
  applied?: ReadingPlace;
  /** Counter of tasks that failed. */
  failures?: ReadingPlace;
}

const label = (whose: string) =>
  z.string().min(1).optional().describe(`Label that names the cluster that changes ${whose}.`);

const place = () => ({
  metric: z.string().min(1).describe('Name of the metric, in the catalog or as the service sends it.'),
  sourceLabel: label('come from'),
  targetLabel: label('go to'),
});

/** `domains.replication`: the scraped metrics with lag, progress and failures. */
export const replicationBlock = () =>
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
