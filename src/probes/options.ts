import type { ArchivalOptions, DomainDefaults } from './archival/archives.ts';
import type { BackupOptions } from './backups/block.ts';
import type { ClusterGroupOptions } from './clusters/block.ts';
import type { DomainsOptions } from './domains/block.ts';
import type { HealthOptions } from './health/block.ts';
import type { StoreOptions } from './stores/store-options.ts';

/** The parts of a configuration that probes are made from. */
export interface ProbesOptions {
  /** Only selected services are checked. */
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
