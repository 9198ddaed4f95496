import type { Address } from '../../core/address.ts';
import { checkGrpc } from '../health/grpc-check.ts';
import { checkTcp } from '../health/health-check.ts';
import type { Finding, Probe, ProbeDeps, Sample } from '../probe.ts';
import type { ClusterGroupOptions } from './block.ts';

/** Counts the clusters of the group in this cluster's configuration. This needs no network. */
export function createGroupProbe({
  clusters,
  currentClusterName,
  primaryClusterName,
}: ClusterGroupOptions): Probe {
  const enabled = clusters.filter((cluster) => cluster.enabled).map(({ name }) => name);
  const gauges: readonly Sample[] = [
    { name: 'svc_clusters', labels: {}, value: enabled.length },
    { name: 'svc_cluster_group_info', labels: { primary_cluster: primaryClusterName }, value: 1 },
  ];
  return {
    async check() {
      return {
        msg: `this cluster; enabled in the group: ${enabled.join(', ') || 'none'}`,
        gauges,
        details: { current: currentClusterName, primary: primaryClusterName, enabled },
      };
    },
  };
}

interface PeerOptions {
  name: string;
  address: Address;
  rpcName?: string;
  rpcTransport?: string;
  /** The timeout, which is sent to the peer as its deadline. */
  timeoutMs: number;
}

type PeerDeps = Pick<ProbeDeps, 'clock' | 'readSecret' | 'log'>;
type PeerCheck = (
  peer: PeerOptions,
  deps: PeerDeps,
  signal: AbortSignal,
  recalled: unknown,
) => Promise<Finding>;

/** The checks by `rpcTransport`. For any other transport the agent only opens a TCP connection. */
const transports: Readonly<Record<string, PeerCheck>> = { grpc: checkPeerByGrpc };

/** Checks that the frontend of another cluster answers. */
export function createPeerProbe(peer: PeerOptions, deps: PeerDeps): Probe {
  const { name, rpcTransport = '' } = peer;
  if (Object.hasOwn(transports, rpcTransport)) {
    const check = transports[rpcTransport]!;
    return { check: (signal, recalled) => check(peer, deps, signal, recalled) };
  }
  const transport = rpcTransport === '' ? 'without rpcTransport' : `with rpcTransport ${rpcTransport}`;
  const warning = `${transport}, the agent only opens a TCP connection to the frontend; set rpcTransport: grpc for a health check`;
  deps.log.write('warn', `cluster ${name}: ${warning}`, { cluster: name, rpcTransport });
  return {
    async check(signal) {
      const finding = await checkTcp({ address: peer.address }, deps, signal);
      return { ...finding, details: { ...finding.details, warning } };
    },
  };
}

/** The gRPC codes with which a proxy reports that it did not reach the frontend: deadline exceeded, unavailable. */
const unreached: ReadonlySet<unknown> = new Set([4, 14]);

/**
 * Checks a peer by gRPC. A frontend that refuses the health call is reachable; only a failed connection or an unhealthy answer is
 * a fault.
 */
async function checkPeerByGrpc(
  { address, rpcName, timeoutMs }: PeerOptions,
  deps: PeerDeps,
  signal: AbortSignal,
  recalled: unknown,
): Promise<Finding> {
  const asked = { dial: { address }, role: 'frontend', rpcService: rpcName, timeoutMs };
  const finding = await checkGrpc(asked, deps, signal, recalled);
  const status = finding.details?.grpcStatus;
  const refused = typeof status === 'number' && status !== 0 && !unreached.has(status);
  if (!refused && finding.reason !== 'unimplemented') return finding;
  return { ...finding, reason: undefined, msg: `reachable, but its health is not known: ${finding.msg}` };
}
