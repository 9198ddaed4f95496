import { planClusters } from '../src/probes/clusters/plan.ts';
import type { Finding } from '../src/probes/probe.ts';
import { clusterGroup, probeOnce, probesOptions } from './cluster-group.ts';

interface PeerCheck {
  port: number;
  rpcTransport?: string;
  rpcName?: string;
  signal?: AbortSignal;
  recalled?: unknown;
  /** Receives the log entries. */
  logged?: unknown[];
}

/** One check of a peer cluster that listens on loopback. */
export function checkPeer({ port, rpcTransport, rpcName, ...deps }: PeerCheck): Promise<Finding> {
  const peer = { rpcAddress: `127.0.0.1:${port}`, rpcTransport, rpcName };
  const rows = planClusters(probesOptions({ clusterGroupMetadata: clusterGroup({}, peer) }));
  return probeOnce(rows[1]!, deps);
}
