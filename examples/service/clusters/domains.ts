import type { Clock } from '../../../src/core/ports.ts';
import type { ArchiveName } from '../archive.ts';
import type { Random } from '../random.ts';
import { type ClusterName, clusterGroup, type DomainName, domainNames, localDomainName } from '../world.ts';

/** A domain as the service answers, in the names of its HTTP interface; it is the same through each cluster. */
export interface DescribedDomain {
  domainInfo: {
    name: string;
    status: string;
    description: string;
    uuid: string;
    data: Record<string, string>;
  };
  configuration: {
    workflowExecutionRetentionPeriodInDays: number;
    historyArchivalStatus: string;
    historyArchivalURI: string;
    visibilityArchivalStatus: string;
    visibilityArchivalURI: string;
  };
  replicationConfiguration: { activeClusterName: ClusterName; clusters: { clusterName: ClusterName }[] };
  failoverVersion: number;
  isGlobalDomain: boolean;
}

export interface Domains {
  /** Undefined for a domain that does not exist. */
  describe(name: string): DescribedDomain | undefined;
  /** Makes the next cluster of the group the active one. */
  failOver(name: DomainName): void;
  /** Makes a cluster the active one. Throws what a client is told when the domain cannot be active there. */
  update(name: string, activeCluster: string): DescribedDomain;
}

interface DomainsDeps {
  clock: Pick<Clock, 'nowMs'>;
  random: Random;
  /** Where archives lie, as URIs. */
  archives: Readonly<Record<ArchiveName, string>>;
}

interface Failover {
  eventTime: string;
  fromCluster: ClusterName;
  toCluster: ClusterName;
  failoverType: 'Force';
}

interface Domain {
  isGlobal: boolean;
  uuid: string;
  activeCluster: ClusterName;
  failoverVersion: number;
  /** Newest first. */
  failovers: Failover[];
}

const { clusters, failoverVersionIncrement } = clusterGroup;
/** As many as the service keeps. */
const keptFailovers = 5;

/**
 * The failover version after `version` that belongs to the cluster: of all that are its initial version plus a
 * multiple of the increment, the first that is above.
 */
export function nextVersion(version: number, to: ClusterName): number {
  const { initialFailoverVersion } = clusters.find(({ name }) => name === to)!;
  const round = Math.floor((version - initialFailoverVersion) / failoverVersionIncrement) + 1;
  return initialFailoverVersion + Math.max(0, round) * failoverVersionIncrement;
}

export function createDomains({ clock, random, archives }: DomainsDeps): Domains {
  const [first] = clusters;
  const domains = new Map<string, Domain>(
    [...domainNames, localDomainName].map((name) => {
      const isGlobal = name !== localDomainName;
      const failoverVersion = isGlobal ? first.initialFailoverVersion : -24;
      return [
        name,
        { isGlobal, uuid: random.uuid(), activeCluster: first.name, failoverVersion, failovers: [] },
      ];
    }),
  );

  function failOverTo(domain: Domain, to: ClusterName) {
    const from = domain.activeCluster;
    const eventTime = new Date(clock.nowMs()).toISOString();
    domain.activeCluster = to;
    domain.failoverVersion = nextVersion(domain.failoverVersion, to);
    domain.failovers.unshift({ eventTime, fromCluster: from, toCluster: to, failoverType: 'Force' });
    domain.failovers.length = Math.min(domain.failovers.length, keptFailovers);
  }

  return {
    failOver(name) {
      const domain = domains.get(name)!;
      const index = clusters.findIndex((cluster) => cluster.name === domain.activeCluster);
      failOverTo(domain, clusters[(index + 1) % clusters.length]!.name);
    },
    update(name, activeCluster) {
      const domain = domains.get(name);
      if (!domain) throw new Error(`Domain ${name} does not exist.`);
      if (!domain.isGlobal) throw new Error(`Domain ${name} is not global.`);
      const to = clusters.find((cluster) => cluster.name === activeCluster);
      if (!to) throw new Error(`${activeCluster} is not among the clusters of ${name}.`);
      if (to.name !== domain.activeCluster) failOverTo(domain, to.name);
      return answerOf(name, domain, archives);
    },
    describe(name) {
      const domain = domains.get(name);
      return domain && answerOf(name, domain, archives);
    },
  };
}

function answerOf(name: string, domain: Domain, archives: DomainsDeps['archives']): DescribedDomain {
  const { isGlobal, uuid, activeCluster, failoverVersion, failovers } = domain;
  const data: Record<string, string> =
    failovers.length === 0 ? {} : { FailoverHistory: JSON.stringify(failovers) };
  return {
    domainInfo: { name, status: 'REGISTERED', description: `The ${name} of the example`, uuid, data },
    configuration: {
      workflowExecutionRetentionPeriodInDays: 3,
      historyArchivalStatus: 'ENABLED',
      historyArchivalURI: archives.history,
      visibilityArchivalStatus: 'ENABLED',
      visibilityArchivalURI: archives.visibility,
    },
    replicationConfiguration: {
      activeClusterName: activeCluster,
      clusters: clusters
        .filter(({ name: cluster }) => isGlobal || cluster === activeCluster)
        .map((cluster) => ({ clusterName: cluster.name })),
    },
    failoverVersion,
    isGlobalDomain: isGlobal,
  };
}
