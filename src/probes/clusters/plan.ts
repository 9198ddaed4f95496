import { parseAddress } from '../../core/address.ts';
import { healthFailureReasons } from '../../core/reasons.ts';
import type { ProbeRow, ProbeSchedule } from '../probe.ts';
import type { ClusterGroupOptions, ClusterOptions } from './block.ts';

export interface ClustersPlanOptions {
  clusterGroupMetadata?: ClusterGroupOptions;
}

const clusterSchedule: ProbeSchedule = { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3 };

/** One row for this cluster, which counts the group, and one for each enabled peer that has an address. */
export function planClusters({ clusterGroupMetadata: group }: ClustersPlanOptions): ProbeRow[] {
  if (!group) return [];
  const peers = group.clusters.filter(({ name, enabled }) => enabled && name !== group.currentClusterName);
  return [groupRow(group), ...peers.flatMap(peerRow)];
}

function groupRow(group: ClusterGroupOptions): ProbeRow {
  return {
    name: `cluster/${group.currentClusterName}`,
    kind: 'cluster',
    target: 'clusterGroupMetadata',
    service: '',
    schedule: clusterSchedule,
    shows: {},
    reasons: ['failed', 'too_slow'],
    key: JSON.stringify(group),
    async open() {
      const { createGroupProbe } = await import('./cluster-checks.ts');
      return createGroupProbe(group);
    },
  };
}

function peerRow({ name, rpcAddress = '', rpcName, rpcTransport }: ClusterOptions): ProbeRow[] {
  const address = parseAddress(rpcAddress);
  if (!address) return [];
  const labels = { remote_cluster: name };
  const { timeoutMs } = clusterSchedule;
  return [
    {
      name: `cluster/${name}`,
      kind: 'cluster',
      target: rpcAddress,
      service: '',
      schedule: clusterSchedule,
      shows: {
        up: { name: 'svc_cluster_up', labels },
        duration: { name: 'svc_cluster_probe_duration_seconds', labels },
      },
      reasons: healthFailureReasons,
      key: JSON.stringify([rpcAddress, rpcName, rpcTransport]),
      async open(deps) {
        const { createPeerProbe } = await import('./cluster-checks.ts');
        return createPeerProbe({ name, address, rpcName, rpcTransport, timeoutMs }, deps);
      },
    },
  ];
}
