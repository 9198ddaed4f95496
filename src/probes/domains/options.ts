/** `domains`, defaults filled in. */
export interface DomainsOptions {
  /** Names of the domains to look at. */
  watch: readonly string[];
  /** The command-line client's call that describes a domain; `{domain}` stands for its name. */
  describe?: { command: readonly string[]; intervalMs: number; timeoutMs: number };
}
