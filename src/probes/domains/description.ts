/** One recorded failover; what the entry does not say is left out. */
export interface FailoverEntry {
  /** The same for the same failover, however often it is read. */
  key: string;
  /** ms since the epoch. */
  atMs?: number;
  /** The cluster it went to. */
  to?: string;
}

export const archives = ['history', 'visibility'] as const;
export type Archive = (typeof archives)[number];

/** A domain as a cluster describes it; what the answer does not show is left out. */
export interface DomainDescription {
  name?: string;
  activeCluster?: string;
  clusters?: readonly string[];
  global?: boolean;
  failoverVersion?: number;
  /** Active in several clusters at once: one failover version and one name do not tell where. */
  activeActive?: boolean;
  retentionMs?: number;
  archival: Partial<Record<Archive, boolean>>;
  /** Newest first; empty when none is recorded, missing when the answer cannot show any. */
  failoverHistory?: readonly FailoverEntry[];
}
