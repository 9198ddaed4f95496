import type { Listener } from '../listen.ts';
import { type ClusterName, clusterGroup } from '../world.ts';
import type { Domains } from './domains.ts';
import { openFrontend } from './frontend.ts';

/** Where the clusters' frontends answer, host:port. */
export type ClusterAddresses = Record<ClusterName, string>;

export interface Clusters {
  /** Rejects if a port cannot be had. */
  start(): Promise<ClusterAddresses>;
  stop(): Promise<void>;
}

/** A frontend for each cluster of the group, from `rpcPort` on; 0 takes free ones. */
export function createClusters(rpcPort: number, domains: Pick<Domains, 'describe'>): Clusters {
  const listeners: Listener[] = [];
  return {
    async start() {
      const addresses: Partial<ClusterAddresses> = {};
      for (const [index, { name }] of clusterGroup.clusters.entries()) {
        const listener = await openFrontend(rpcPort === 0 ? 0 : rpcPort + index, domains);
        listeners.push(listener);
        addresses[name] = `127.0.0.1:${listener.port}`;
      }
      return addresses as ClusterAddresses;
    },
    async stop() {
      await Promise.all(listeners.splice(0).map(({ close }) => close()));
    },
  };
}
