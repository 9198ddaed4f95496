import { planArchives } from './archival/plan.ts';
import { archivesOf, planBackups } from './backups/backups.ts';
import { planClusters } from './clusters/plan.ts';
import { type DomainsPlanOptions, planDomains } from './domains/plan.ts';
import { type HealthPlanOptions, planHealth } from './health/plan.ts';
import type { ProbeRow } from './probe.ts';
import { planRehearsals, type RehearsalsOptions } from './rehearsal/rehearsals.ts';
import { planReplication } from './replication/plan.ts';
import { planStores } from './stores/stores.ts';

/** The parts of a configuration that probes are made from. */
export interface ProbesOptions extends HealthPlanOptions, DomainsPlanOptions, RehearsalsOptions {}

/**
 * The tables of probes: a row for each check that a configuration demands. A row has the probe's name, its schedule and its
 * series; the code of the check is loaded when the row is opened.
 */
const plans: readonly ((options: ProbesOptions) => ProbeRow[])[] = [
  planHealth,
  (options) => planStores({ stores: options.stores, archivesOf: archivesOf(options) }),
  planClusters,
  planDomains,
  planReplication,
  planArchives,
  planBackups,
  planRehearsals,
];

export const planProbes = (options: ProbesOptions): ProbeRow[] => plans.flatMap((plan) => plan(options));
