import { archiveFailureReasons, commandFailureReasons, domainFailureReasons } from '../../core/reasons.ts';
import { type ArchivesPlanOptions, ownArchives } from '../archival/plan.ts';
import type { ClustersPlanOptions } from '../clusters/plan.ts';
import type { ProbeRow } from '../probe.ts';
import type { DomainsOptions } from './block.ts';

export interface DomainsPlanOptions extends ClustersPlanOptions, ArchivesPlanOptions {
  domains?: DomainsOptions;
}

/** One row for each watched domain, if there is a command that describes domains. */
export function planDomains({
  domains,
  clusterGroupMetadata: group,
  archival,
  domainDefaults,
}: DomainsPlanOptions): ProbeRow[] {
  const describe = domains?.describe;
  if (!domains || !describe) return [];
  const { command, intervalMs, timeoutMs } = describe;
  return [...new Set(domains.watch)].map(
    (domain): ProbeRow => ({
      name: `domain/${domain}`,
      kind: 'domain',
      target: command[0] ?? '',
      service: '',
      // During a failover clusters disagree for a moment.
      schedule: { intervalMs, timeoutMs, failureThreshold: 2 },
      shows: { counters: [{ name: 'svc_domain_failovers_total', labels: { domain } }] },
      reasons: [
        ...new Set([
          ...commandFailureReasons,
          ...domainFailureReasons,
          ...(archival ? archiveFailureReasons : []),
        ]),
        'failed',
      ],
      key: JSON.stringify([domain, describe, group, archival, domainDefaults]),
      async open(deps) {
        const { createDomainProbe } = await import('./domain-check.ts');
        const ownArchive = ownArchives({ archival, domainDefaults }, deps);
        return createDomainProbe({ domain, command, group, timeoutMs, ownArchive }, deps);
      },
    }),
  );
}
