import { type Address, parseAddress } from '../../core/address.ts';
import { healthFailureReasons } from '../../core/reasons.ts';
import type { ProbesOptions } from '../options.ts';
import type { ProbeRow, Schedule } from '../probe.ts';
import type { ClusterGroupOptions, ClusterOptions } from './options.ts';

const schedule: Schedule = { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3 };

/** One row for the own cluster, which says how many there are, and one for each enabled peer with an address. */
export function planClusters({ clusterGroupMetadata: group }: ProbesOptions): ProbeRow[] {
  if (!group) return [];
  const peers = group.clusters.flatMap((cluster) => {
    const address = cluster.rpcAddress === undefined ? undefined : parseAddress(cluster.rpcAddress);
    const isPeer = cluster.enabled && cluster.name !== group.currentClusterName;
    return isPeer && address ? [peerRow(cluster, address)] : [];
  });
  return [ownRow(group), ...peers];
}

function ownRow(group: ClusterGroupOptions): ProbeRow {
  return {
    name: `cluster/${group.currentClusterName}`,
    kind: 'cluster',
    target: 'clusterGroupMetadata',
    service: '',
    schedule,
    shows: {},
    reasons: ['failed', 'too_slow'],
    key: JSON.stringify(group),
    async open() {
      const { createGroupProbe } = await import('./own.ts');
      return createGroupProbe(group);
    },
  };
}

function peerRow(
  { name, rpcAddress = '', rpcName, rpcTransport }: ClusterOptions,
  address: Address,
): ProbeRow {
  const labels = { remote_cluster: name };
  const { timeoutMs } = schedule;
  return {
    name: `cluster/${name}`,
    kind: 'cluster',
    target: rpcAddress,
    service: '',
    schedule,
    shows: {
      up: { name: 'svc_cluster_up', labels },
      duration: { name: 'svc_cluster_probe_duration_seconds', labels },
    },
    reasons: healthFailureReasons,
    key: JSON.stringify([rpcAddress, rpcName, rpcTransport]),
    async open(deps) {
      const { createPeerProbe } = await import('./peer.ts');
      return createPeerProbe({ name, address, rpcName, rpcTransport, timeoutMs }, deps);
    },
  };
}
