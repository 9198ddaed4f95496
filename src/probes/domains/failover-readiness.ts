import type { ClusterGroupOptions } from '../clusters/cluster-group.ts';
import type { Finding } from '../probe.ts';
import type { DomainDescription } from './description.ts';

/** A cluster further behind than this is not ready (spec, Alert conditions: replication lag above 300 s). */
const mostLagSeconds = 300;

/** Whether a domain can fail over now, and why not, or why that is not known. */
export interface FailoverReadiness {
  /** Undefined when it is not known. */
  ready?: boolean;
  why: string;
}

export interface ReadinessInput {
  /** The domain as this cluster describes it. */
  own: DomainDescription;
  /** The domain as other clusters describe it, by cluster; only those that could be asked. */
  views: ReadonlyMap<string, DomainDescription>;
  group: ClusterGroupOptions;
  /** The last finding of another probe. */
  latest: (probe: string) => Finding | undefined;
}

/**
 * A domain can fail over if one of its other clusters answers, has replicated all but a little, and describes the
 * domain as the active cluster does. Undefined for a local domain, which never fails over.
 */
export function failoverReadiness(input: ReadinessInput): FailoverReadiness | undefined {
  const { own, group } = input;
  const { activeCluster, clusters, global } = own;
  if (global === false || activeCluster === undefined) return undefined;
  const standbys = group.clusters
    .filter(({ name, enabled }) => enabled && name !== activeCluster && (clusters?.includes(name) ?? true))
    .map(({ name }) => name);
  if (standbys.length === 0) return { ready: false, why: 'no other cluster has the domain' };
  const judged = standbys.map((standby) => judge(standby, activeCluster, input));
  return (
    judged.find(({ ready }) => ready === true) ?? {
      ready: judged.some(({ ready }) => ready === undefined) ? undefined : false,
      why: judged.map(({ why }) => why).join('; '),
    }
  );
}

/** The first check that fails decides, else the first whose result is not known. */
function judge(standby: string, active: string, input: ReadinessInput): FailoverReadiness {
  const checks = [health(standby, input), agreement(standby, active, input), lag(standby, active, input)];
  const decisive =
    checks.find(({ ready }) => ready === false) ?? checks.find(({ ready }) => ready === undefined);
  return decisive ?? { ready: true, why: `${standby} answers, agrees and is up to date` };
}

/** This cluster has just described the domain, so it answers. */
function health(standby: string, { group, latest }: ReadinessInput): FailoverReadiness {
  if (standby === group.currentClusterName) return { ready: true, why: '' };
  const finding = latest(`cluster/${standby}`);
  if (finding === undefined) return { why: `the health of ${standby} is not known` };
  return { ready: finding.reason === undefined, why: `${standby}: ${finding.msg}` };
}

function agreement(
  standby: string,
  active: string,
  { own, views, group }: ReadinessInput,
): FailoverReadiness {
  const view = (cluster: string) => (cluster === group.currentClusterName ? own : views.get(cluster));
  const [here, there] = [view(standby), view(active)];
  if (here?.activeCluster === undefined || there?.activeCluster === undefined) {
    const unknown = here?.activeCluster === undefined ? standby : active;
    return { why: `where the domain is active is not known through ${unknown}` };
  }
  const ready = here.activeCluster === active && there.activeCluster === active;
  return { ready, why: `${standby} says ${here.activeCluster}, ${active} says ${there.activeCluster}` };
}

function lag(standby: string, active: string, { group, latest }: ReadinessInput): FailoverReadiness {
  const gauges = latest(`replication/${group.currentClusterName}`)?.gauges ?? [];
  const seconds = gauges.find(
    ({ name, labels }) =>
      name === 'svc_replication_lag_seconds' &&
      labels.source_cluster === active &&
      labels.target_cluster === standby,
  )?.value;
  if (seconds === undefined) return { why: `the lag of ${standby} behind ${active} is not known` };
  return { ready: seconds <= mostLagSeconds, why: `${standby} is ${seconds} s behind ${active}` };
}
