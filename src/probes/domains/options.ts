import type { ReplicationOptions } from '../replication/options.ts';

/** How a domain is described. */
export interface DescribeOptions {
  /**
   * The command-line client's call. `{domain}` in an argument stands for the domain's name; with `{cluster}` or
   * `{address}` (name and rpcAddress of a cluster of the group) each cluster is asked, and the views are compared.
   */
  command: readonly string[];
  intervalMs: number;
  timeoutMs: number;
}

/** `domains`, defaults filled in. */
export interface DomainsOptions {
  /** Names of the domains to look at. */
  watch: readonly string[];
  describe?: DescribeOptions;
  /** Where replication shows in the scraped metrics; what real services send unless told. */
  replication?: ReplicationOptions;
}
