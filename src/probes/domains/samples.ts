import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { Sample } from '../probe.ts';
import { archives, type DomainDescription } from './description.ts';

/** The gauges of a domain; what its description does not show is left out. `lastFailoverMs` is since the epoch. */
export function domainGauges(
  domain: string,
  description: DomainDescription,
  lastFailoverMs: number | undefined,
): Sample[] {
  const { activeCluster, failoverVersion, global, retentionMs, archival } = description;
  const flag = (value: boolean | undefined) => (value === undefined ? undefined : Number(value));
  const inSeconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
  const gauge = (name: AgentMetricName, value: number | undefined, labels = {}): Sample[] =>
    value === undefined ? [] : [{ name, labels: { domain, ...labels }, value }];
  return [
    ...(activeCluster === undefined
      ? []
      : gauge('svc_domain_active_cluster', 1, { active_cluster: activeCluster })),
    ...gauge('svc_domain_clusters', spanOf(description)),
    ...gauge('svc_domain_global', flag(global)),
    ...gauge('svc_domain_failover_version', failoverVersion),
    ...gauge('svc_domain_retention_seconds', inSeconds(retentionMs)),
    ...archives.flatMap((archive) =>
      gauge('svc_domain_archival_enabled', flag(archival[archive]), { archive }),
    ),
    ...gauge('svc_domain_last_failover_timestamp_seconds', inSeconds(lastFailoverMs)),
  ];
}

/** Clients do not list the one cluster of a local domain. */
function spanOf({ clusters, global }: DomainDescription): number | undefined {
  return clusters?.length ?? (global === false ? 1 : undefined);
}
