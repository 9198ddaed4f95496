import { commandFailureReasons, domainFailureReasons } from '../../core/reasons.ts';
import type { ProbesOptions } from '../options.ts';
import type { ProbeRow } from '../probe.ts';

/** One row for each watched domain, if there is a command that describes one. */
export function planDomains({ domains, clusterGroupMetadata: group }: ProbesOptions): ProbeRow[] {
  const describe = domains?.describe;
  if (!domains || !describe) return [];
  return [...new Set(domains.watch)].map((domain): ProbeRow => {
    const { command, intervalMs, timeoutMs } = describe;
    return {
      name: `domain/${domain}`,
      kind: 'domain',
      target: command[0] ?? '',
      service: '',
      // Views differ for a moment while a failover makes its way from cluster to cluster.
      schedule: { intervalMs, timeoutMs, failureThreshold: 2 },
      shows: { counters: [{ name: 'svc_domain_failovers_total', labels: { domain } }] },
      reasons: [...commandFailureReasons, ...domainFailureReasons, 'failed'],
      key: JSON.stringify([domain, describe, group]),
      async open(deps) {
        const { createDomainProbe } = await import('./probe.ts');
        return createDomainProbe({ domain, command, group, timeoutMs }, deps);
      },
    };
  });
}
