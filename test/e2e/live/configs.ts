import { join } from 'node:path';
import type { Gate } from './gate.ts';
import type { FakeRole } from './role.ts';
import type { LiveService } from './service.ts';
import { storeDatabase } from './store.ts';

/** What the agents of the two clusters check in addition to the service's roles. */
export interface Surroundings {
  directory: string;
  service: LiveService;
  /** Gates to the frontends of the clusters, through which the other cluster reaches them. */
  frontends: Readonly<Record<'dc1' | 'dc2', Gate>>;
  /** Gates from the clusters to their common store, whose own port changes when it starts again. */
  storeGates: Readonly<Record<'dc1' | 'dc2', Gate>>;
  /** The URL to which dc2's worker reports. */
  platformUrl: string;
}

/** Files that the test writes as the service would. */
export const placesIn = (directory: string) => ({
  /** The file with what the client prints about a domain in a cluster. */
  domain: (cluster: string, domain: string) => join(directory, `${cluster}-${domain}.json`),
  historyArchive: join(directory, 'archive', 'history'),
  visibilityArchive: join(directory, 'archive', 'visibility'),
  /** The archive of dc2. */
  otherArchive: join(directory, 'archive', 'other'),
});

const scraped = ({ metricsUrl }: FakeRole) => ({
  vocabulary: 'svc',
  scrape: { url: metricsUrl, interval: '1s', timeout: '900ms' },
});
const logged = ({ log }: FakeRole) => ({ logs: { paths: [log], startAt: 'beginning' } });

const store = (port: number) => ({
  name: 'main',
  kind: 'postgres',
  address: `127.0.0.1:${port}`,
  user: 'postgres',
  databases: { persistence: storeDatabase },
  schema: { persistence: '0.8' },
});

const group = (own: string, { frontends }: Surroundings) => ({
  failoverVersionIncrement: 10,
  primaryClusterName: 'dc1',
  currentClusterName: own,
  clusterGroup: {
    ...Object.fromEntries(
      Object.entries(frontends).map(([name, { port }], at) => [
        name,
        { initialFailoverVersion: at, rpcAddress: `127.0.0.1:${port}` },
      ]),
    ),
    dc3: { initialFailoverVersion: 2 },
  },
});

const domains = (own: string, watch: readonly string[], { directory }: Surroundings) => ({
  watch,
  describe: { command: ['cat', placesIn(directory).domain(own, '{domain}')] },
});

/** The configuration of the agent of dc1, which checks nearly everything. */
export function firstConfig(around: Surroundings) {
  const { service, directory, storeGates } = around;
  const { frontend, history, matching, worker } = service.roles;
  const { historyArchive, visibilityArchive } = placesIn(directory);
  const tls = { caFile: service.authorities };
  const archive = { status: 'enabled', provider: { filestore: {} } };
  const at = (path: string) => ({ status: 'enabled', URI: `file://${path}` });
  return {
    services: {
      frontend: { ...scraped(frontend), ...logged(frontend), health: { url: frontend.healthUrl, tls } },
      history: { ...scraped(history), ...logged(history), health: history.healthUrl },
      matching: { ...scraped(matching), ...logged(matching), health: matching.healthUrl },
      worker: { ...scraped(worker), ...logged(worker), health: worker.healthUrl },
    },
    stores: [store(storeGates.dc1.port)],
    clusterGroupMetadata: group('dc1', around),
    domains: domains('dc1', ['orders'], around),
    archival: { history: archive, visibility: archive },
    domainDefaults: { archival: { history: at(historyArchive), visibility: at(visibilityArchive) } },
  };
}

/** The configuration of another host of dc1, with a history role and the health of a worker. */
export const secondConfig = ({ service }: Surroundings) => ({
  metrics: { tags: { cluster: 'dc1' } },
  services: {
    history: {
      ...scraped(service.roles['second history']),
      health: service.roles['second history'].healthUrl,
    },
    worker: { health: service.roles['second worker'].healthUrl },
  },
});

/** The configuration of the agent of dc2, which does not watch domains. */
export function otherConfig(around: Surroundings) {
  const { service, storeGates, platformUrl, directory } = around;
  return {
    services: {
      frontend: {
        ...scraped(service.roles['dc2 frontend']),
        health: {
          url: service.roles['dc2 frontend'].healthUrl,
          interval: '2s',
          tls: { caFile: service.dc2Authorities },
        },
      },
      history: { ...scraped(service.roles['dc2 history']), health: service.roles['dc2 history'].healthUrl },
      worker: {
        ...logged(service.roles['dc2 history']),
        metrics: { hostedmetrics: { protocol: 'remotewrite', endpoint: platformUrl } },
      },
    },
    stores: [store(storeGates.dc2.port)],
    clusterGroupMetadata: group('dc2', around),
    archival: { visibility: { status: 'enabled', provider: { filestore: {} } } },
    domainDefaults: {
      archival: { visibility: { status: 'enabled', URI: `file://${placesIn(directory).otherArchive}` } },
    },
    domains: domains('dc2', ['orders', 'payments'], around),
  };
}

/** The configuration of the only agent of dc3. */
export const loneConfig = ({ service }: Surroundings) => ({
  metrics: { tags: { cluster: 'dc3' } },
  services: { frontend: scraped(service.roles['dc3 frontend']) },
});
