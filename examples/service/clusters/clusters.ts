import { type ClusterName, clusterGroup } from '../world.ts';
import { type Frontend, type FrontendDomains, openFrontend } from './frontend.ts';

/** Where the clusters' frontends answer, host:port. */
export type ClusterAddresses = Record<ClusterName, string>;

interface Clusters {
  /** Rejects if a port cannot be had. */
  start(): Promise<ClusterAddresses>;
  /** The cluster that is lost at the moment, if one is. */
  lose(cluster: string | undefined): void;
  stop(): Promise<void>;
}

/** A frontend for each cluster of the group, from `rpcPort` on; 0 takes free ones. */
export function createClusters(rpcPort: number, domains: FrontendDomains): Clusters {
  const frontends = new Map<ClusterName, Frontend>();
  return {
    async start() {
      const addresses: Partial<ClusterAddresses> = {};
      for (const [index, { name }] of clusterGroup.clusters.entries()) {
        const frontend = await openFrontend(rpcPort === 0 ? 0 : rpcPort + index, domains);
        frontends.set(name, frontend);
        addresses[name] = `127.0.0.1:${frontend.port}`;
      }
      return addresses as ClusterAddresses;
    },
    lose(lost) {
      for (const [name, { setLost }] of frontends) setLost(name === lost);
    },
    async stop() {
      await Promise.all([...frontends.values()].map(({ close }) => close()));
      frontends.clear();
    },
  };
}
