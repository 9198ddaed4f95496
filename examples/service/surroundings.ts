import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../src/core/ports.ts';
import { type Archive, type ArchiveName, openArchive } from './archive.ts';
import { type ClusterAddresses, createClusters } from './clusters/clusters.ts';
import { createDomains } from './clusters/domains.ts';
import type { Conditions } from './incidents.ts';
import type { ServiceOptions } from './options.ts';
import { createRandom } from './random.ts';
import { createStore, type StoreState } from './store/store.ts';
import { clusterGroup, type DatabaseRole, type DomainName, databases, domainNames } from './world.ts';

/** Where that is which the roles work with. */
export interface SurroundingAddresses {
  /** Missing without a store. Nobody answers there until it has started. */
  store?: { address: string; databases: Readonly<Record<DatabaseRole, { name: string; version: string }>> };
  /** The first cluster is the service's own. */
  group: typeof clusterGroup;
  /** The clusters' frontends, host:port. */
  clusters: ClusterAddresses;
  domains: readonly string[];
  /** URIs. */
  archives: Readonly<Record<ArchiveName, string>>;
}

/** What the roles work with: a store, the other cluster, archives. */
interface Surroundings {
  readonly storeState: StoreState;
  /** Rejects if a port or a directory cannot be had; what was opened until then is closed by `stop`. */
  start(): Promise<SurroundingAddresses>;
  advance(conditions: Conditions, isArchiving: boolean): void;
  failOver(domain: DomainName): void;
  stop(): Promise<void>;
}

export function createSurroundings(
  { directory, seed, storePort, rpcPort }: ServiceOptions,
  { clock, complain }: { clock: Clock; complain(why: string): void },
): Surroundings {
  const place = (name: ArchiveName) => resolve(join(directory, 'archive', name));
  const uri = (name: ArchiveName) => `${pathToFileURL(place(name)).href}/`;
  const archives = { history: uri('history'), visibility: uri('visibility') };
  const random = createRandom(seed + 100);
  const domains = createDomains({ clock, random, archives });
  const clusters = createClusters(rpcPort, domains);
  const store = storePort === undefined ? undefined : createStore(storePort, { complain });
  let archive: Archive | undefined;

  return {
    get storeState() {
      return store?.state ?? 'up';
    },
    async start() {
      archive = openArchive({ history: place('history'), visibility: place('visibility') }, random);
      const addresses = await clusters.start();
      const port = await store?.start();
      return {
        ...(port !== undefined && { store: { address: `127.0.0.1:${port}`, databases } }),
        group: clusterGroup,
        clusters: addresses,
        domains: domainNames,
        archives,
      };
    },
    advance(conditions, isArchiving) {
      store?.follow(conditions);
      clusters.lose(conditions.lostCluster);
      if (isArchiving) archive?.advance(clock.nowMs());
    },
    failOver: domains.failOver,
    stop: async () => {
      await Promise.all([clusters.stop(), store?.stop()]);
    },
  };
}
