import type { ArchivalOptions, DomainDefaults } from './archival/options.ts';
import type { BackupOptions } from './backups/options.ts';
import type { ClusterGroupOptions } from './clusters/options.ts';
import type { DomainsOptions } from './domains/options.ts';
import type { HealthOptions } from './health/options.ts';
import type { StoreOptions } from './stores/options.ts';

/** What of a configuration the probes are made from. */
export interface ProbesOptions {
  /** Only selected ones are looked at. */
  services: readonly { name: string; selected: boolean; health?: HealthOptions }[];
  stores: readonly StoreOptions[];
  clusterGroupMetadata?: ClusterGroupOptions;
  domains?: DomainsOptions;
  archival?: ArchivalOptions;
  domainDefaults?: DomainDefaults;
  backups?: readonly BackupOptions[];
  /** Where runs of backups and of recovery procedures are recorded. */
  stateDirectory?: string;
}
