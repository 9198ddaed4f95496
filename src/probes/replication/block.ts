import * as z from 'zod';
import { interval, parsedAs } from '../../core/text-formats.ts';
import { lagUnits, type ReplicationOptions } from './options.ts';

const label = (whose: string) =>
  z.string().min(1).optional().describe(`Label that names the cluster that changes ${whose}.`);

const place = {
  metric: z
    .string()
    .min(1)
    .describe('Name of the metric, in the catalog’s words or as the service sends it.'),
  sourceLabel: label('come from'),
  targetLabel: label('go to'),
};

/** `domains.replication`: where lag, progress and failures stand among the scraped metrics. */
export const replicationBlock = () =>
  z
    .strictObject({
      interval: z.string(interval.fault).transform(parsedAs(interval)).prefault('15s'),
      lag: z
        .strictObject({ ...place, unit: z.enum(lagUnits).default('seconds') })
        .optional()
        .describe('Gauge of how far a cluster is behind. Default: what real services send.'),
      applied: z.strictObject(place).optional().describe('Counter of replication tasks applied.'),
      failures: z.strictObject(place).optional().describe('Counter of replication tasks that failed.'),
    })
    .transform(({ interval: intervalMs, ...rest }): ReplicationOptions => ({ intervalMs, ...rest }))
    .describe('Where replication shows in the scraped metrics.');
