import { planArchives } from './archival/plan.ts';
import { planBackups } from './backups/backups.ts';
import { planClusters } from './clusters/plan.ts';
import { planDomains } from './domains/plan.ts';
import { planHealth } from './health/plan.ts';
import type { ProbesOptions } from './options.ts';
import type { ProbeRow } from './probe.ts';
import { planReplication } from './replication/plan.ts';
import { planStores } from './stores/plan.ts';

/** A row per kind of probe. */
const plans: readonly ((options: ProbesOptions) => ProbeRow[])[] = [
  planHealth,
  planStores,
  planClusters,
  planDomains,
  planReplication,
  planArchives,
  planBackups,
];

/** All that a configuration asks to be looked at, in the table's order. */
export const planProbes = (options: ProbesOptions): ProbeRow[] => plans.flatMap((plan) => plan(options));
