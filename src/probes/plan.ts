import { parseAddress } from '../core/address.ts';
import {
  archiveFailureReasons,
  commandFailureReasons,
  domainFailureReasons,
  healthFailureReasons,
} from '../core/reasons.ts';
import { objectStoreAddress } from '../core/text-formats.ts';
import {
  type ArchivalOptions,
  type ArchivalUri,
  type ArchiveOptions,
  type ArchiveTarget,
  archivalUri,
  type DomainDefaults,
  schemes,
} from './archival/archives.ts';
import { planBackups } from './backups/backups.ts';
import type { ClusterGroupOptions, ClusterOptions } from './clusters/block.ts';
import type { Lookup } from './connection.ts';
import type { DomainsOptions } from './domains/block.ts';
import type { HealthOptions } from './health/block.ts';
import type { Dial, HealthDeps } from './health/health-check.ts';
import type { Finding, Probe, ProbeDeps, ProbeRow, ProbeSchedule } from './probe.ts';
import { planRehearsals, type RehearsalsOptions } from './rehearsal/rehearsals.ts';
import { planStores } from './stores/stores.ts';

/** The parts of a configuration that probes are made from. */
export interface ProbesOptions extends RehearsalsOptions {
  /** Only selected services are checked. */
  services: readonly { name: string; selected: boolean; health?: HealthOptions }[];
  clusterGroupMetadata?: ClusterGroupOptions;
  domains?: DomainsOptions;
  archival?: ArchivalOptions;
  domainDefaults?: DomainDefaults;
}

// The table of probes: one row for everything that a configuration checks. A row has the probe's name, its
// schedule and its series; the code that checks is loaded when the row is opened.

const plans: readonly ((options: ProbesOptions) => ProbeRow[])[] = [
  planHealth,
  planStores,
  planClusters,
  planDomains,
  planReplication,
  planArchives,
  planBackups,
  planRehearsals,
];

/** All probes of a configuration. */
export const planProbes = (options: ProbesOptions): ProbeRow[] => plans.flatMap((plan) => plan(options));

// Health of roles

/** One health check: which role, where, and how long it may take. */
interface HealthTarget {
  service: string;
  url: URL;
  dial: Dial;
  timeoutMs: number;
}

type HealthCheck = (signal: AbortSignal, recalled: unknown) => Promise<Finding>;

interface HealthProtocol {
  /** Used where the URL has no port. */
  port?: number;
  /** `always`: the scheme means TLS. `asked`: only with `tls` in the options. Missing: never. */
  tls?: 'always' | 'asked';
  load(): Promise<(target: HealthTarget, deps: HealthDeps) => HealthCheck>;
}

const http = async () => {
  const { checkHttp } = await import('./health/health-check.ts');
  return (target: HealthTarget, deps: HealthDeps): HealthCheck => {
    return (signal) => checkHttp(target, deps, signal);
  };
};

const grpc = async () => {
  const { checkGrpc } = await import('./health/grpc-check.ts');
  return ({ url, service: role, ...rest }: HealthTarget, deps: HealthDeps): HealthCheck => {
    const target = { ...rest, role, service: url.pathname.replace(/^\/|\/$/g, '') };
    return (signal, recalled) => checkGrpc(target, deps, signal, recalled);
  };
};

const tcp = async () => {
  const { checkTcp } = await import('./health/health-check.ts');
  return ({ dial }: HealthTarget, deps: HealthDeps): HealthCheck => {
    return (signal) => checkTcp(dial, deps, signal);
  };
};

const healthProtocols: Readonly<Record<string, HealthProtocol>> = {
  'http:': { port: 80, load: http },
  'https:': { port: 443, tls: 'always', load: http },
  'grpc:': { load: grpc },
  'grpcs:': { tls: 'always', load: grpc },
  'tcp:': { tls: 'asked', load: tcp },
};

/** A row for each selected service with a health endpoint. `lookup` replaces the system's name resolution. */
export function planHealth({ services }: Pick<ProbesOptions, 'services'>, lookup?: Lookup): ProbeRow[] {
  return services.flatMap(({ name, selected, health }) =>
    selected && health !== undefined ? [healthRow(name, health, lookup)] : [],
  );
}

function healthRow(service: string, options: HealthOptions, lookup: Lookup | undefined): ProbeRow {
  const url = new URL(options.url);
  const protocol = healthProtocols[url.protocol]!;
  const { intervalMs, timeoutMs, failureThreshold, successThreshold } = options;
  return {
    name: `health/${service}`,
    kind: 'health',
    // Without user, password and query, which may be secret.
    target: `${url.protocol}//${url.host}${url.pathname}`,
    service,
    schedule: { intervalMs, timeoutMs, failureThreshold, successThreshold },
    shows: {
      up: { name: 'svc_role_up', labels: {} },
      duration: { name: 'svc_role_health_check_duration_seconds', labels: {} },
      failures: { name: 'svc_role_health_failures_total', labels: {} },
      transitions: { name: 'svc_role_health_transitions_total', labels: {} },
    },
    reasons: healthFailureReasons,
    key: JSON.stringify(options),
    async open(deps): Promise<Probe> {
      const load = await protocol.load();
      const target = { service, url, dial: healthDial(url, protocol, options), timeoutMs };
      return { check: load(target, { ...deps, lookup }) };
    },
  };
}

function healthDial(url: URL, protocol: HealthProtocol, { tls, auth }: HealthOptions): Dial {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: url.port === '' ? (protocol.port ?? 0) : Number(url.port) };
  return { address, tls: { always: tls ?? {}, asked: tls, never: undefined }[protocol.tls ?? 'never'], auth };
}

// Clusters

const clusterSchedule: ProbeSchedule = { intervalMs: 15_000, timeoutMs: 5000, failureThreshold: 3 };

/** One row for this cluster, which counts the group, and one for each enabled peer that has an address. */
export function planClusters({
  clusterGroupMetadata: group,
}: Pick<ProbesOptions, 'clusterGroupMetadata'>): ProbeRow[] {
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
      const { createGroupProbe } = await import('./clusters/cluster-checks.ts');
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
        const { createPeerProbe } = await import('./clusters/cluster-checks.ts');
        return createPeerProbe({ name, address, rpcName, rpcTransport, timeoutMs }, deps);
      },
    },
  ];
}

// Domains

/** One row for each watched domain, if there is a command that describes one. */
export function planDomains({
  domains,
  clusterGroupMetadata: group,
  archival,
  domainDefaults,
}: Pick<ProbesOptions, 'domains' | 'clusterGroupMetadata' | 'archival' | 'domainDefaults'>): ProbeRow[] {
  const describe = domains?.describe;
  if (!domains || !describe) return [];
  const { command, intervalMs, timeoutMs } = describe;
  return [...new Set(domains.watch)].map(
    (domain): ProbeRow => ({
      name: `domain/${domain}`,
      kind: 'domain',
      target: command[0] ?? '',
      service: '',
      // During a failover clusters disagree for a moment.
      schedule: { intervalMs, timeoutMs, failureThreshold: 2 },
      shows: { counters: [{ name: 'svc_domain_failovers_total', labels: { domain } }] },
      reasons: [
        ...new Set([
          ...commandFailureReasons,
          ...domainFailureReasons,
          ...(archival ? archiveFailureReasons : []),
        ]),
        'failed',
      ],
      key: JSON.stringify([domain, describe, group, archival, domainDefaults]),
      async open(deps) {
        const { createDomainProbe } = await import('./domains/domain-check.ts');
        const ownArchive = ownArchives({ archival, domainDefaults }, deps);
        return createDomainProbe({ domain, command, group, timeoutMs, ownArchive }, deps);
      },
    }),
  );
}

// Replication

const replicationIntervalMs = 15_000;

/** One row for replication between clusters, if the group has two or more enabled ones. */
export function planReplication({
  clusterGroupMetadata: group,
  domains,
}: Pick<ProbesOptions, 'domains' | 'clusterGroupMetadata'>): ProbeRow[] {
  if (!group || group.clusters.filter(({ enabled }) => enabled).length < 2) return [];
  const replication = domains?.replication;
  const intervalMs = replication?.intervalMs ?? replicationIntervalMs;
  return [
    {
      name: `replication/${group.currentClusterName}`,
      kind: 'replication',
      target: 'scraped metrics',
      service: '',
      schedule: { intervalMs, timeoutMs: intervalMs },
      shows: {},
      reasons: ['failed', 'too_slow'],
      key: JSON.stringify([group, replication]),
      async open(deps) {
        const { createReplicationProbe } = await import('./replication/replication-check.ts');
        return createReplicationProbe({ group, replication }, deps);
      },
    },
  ];
}

// Archives

/** Archives change in hours, and a list request costs money. */
const archiveSchedule: ProbeSchedule = { intervalMs: 60_000, timeoutMs: 20_000 };

/**
 * One row for each archive that is written or read and for which `domainDefaults` has a URI. An archive of an
 * unknown scheme has no `svc_archival_up`; its finding has the reason.
 */
export function planArchives({
  archival,
  domainDefaults,
}: Pick<ProbesOptions, 'archival' | 'domainDefaults'>): ProbeRow[] {
  return (['history', 'visibility'] as const).flatMap((archive) => {
    const section = archival?.[archive];
    const text = domainDefaults?.archival[archive]?.uri ?? '';
    const uri = archivalUri.read(text);
    // A paused archive is still read, and will be written to again.
    if (!section || !uri || (section.status === 'disabled' && !section.enableRead)) return [];
    const isDefault = domainDefaults?.archival[archive]?.status === 'enabled';
    return [archiveRow(section, uri, { archive, scheme: uri.scheme, uri: text, isDefault })];
  });
}

type ArchivePlace = Pick<ArchiveTarget, 'archive' | 'scheme' | 'uri' | 'isDefault'>;

/** What is checked of an archive, and how. */
function archiveCheck(
  { providers, status, enableRead, writeCheck, readCheck }: ArchiveOptions,
  uri: ArchivalUri,
  place: ArchivePlace,
) {
  const scheme = Object.hasOwn(schemes, uri.scheme) ? schemes[uri.scheme] : undefined;
  const provider = providers.find(({ kind }) => kind === scheme?.providerKind);
  const isWritten = status === 'enabled';
  const isFile = uri.scheme === 'file';
  const target: ArchiveTarget = {
    ...place,
    isWritten,
    writeCheck: isWritten && (writeCheck ?? isFile),
    readCheck: enableRead && (readCheck ?? isFile),
    modes: isFile ? { file: modeOf(provider?.fileMode), directory: modeOf(provider?.dirMode) } : undefined,
  };
  const open = async ({ clock, readSecret }: Pick<ProbeDeps, 'clock' | 'readSecret'>): Promise<Probe> => {
    if (!scheme) return unknownScheme(uri.scheme);
    if (scheme.providerKind === 'filestore') {
      const { createDirectoryProbe } = await import('./archival/directory.ts');
      return createDirectoryProbe(uri.path, target, { clock });
    }
    const { createBucketProbe } = await import('./archival/bucket.ts');
    const region = provider?.region ?? scheme.region;
    const server = objectStoreAddress.read(provider?.endpoint ?? scheme.endpoint(region))!;
    const bucket = { endpoint: server, region, bucket: uri.bucket, prefix: uri.path };
    return createBucketProbe(bucket, target, { clock, readSecret });
  };
  return { scheme, target, open, key: JSON.stringify([target, provider]) };
}

/** An octal mode as the service's configuration has it; undefined for anything else. */
function modeOf(text = ''): number | undefined {
  return /^[0-7]{3,4}$/.test(text) ? Number.parseInt(text, 8) & 0o777 : undefined;
}

/** The probe of an archive that a domain names, unless it is the one of new domains, which has a row. */
function ownArchives(
  { archival, domainDefaults }: Pick<ProbesOptions, 'archival' | 'domainDefaults'>,
  deps: ProbeDeps,
) {
  return (archive: 'history' | 'visibility', text: string): Promise<Probe> | undefined => {
    const section = archival?.[archive];
    const uri = archivalUri.read(text);
    if (!section) return undefined;
    if (!uri) {
      const finding: Finding = { reason: 'failed', msg: archivalUri.fault };
      return Promise.resolve({ check: async () => finding });
    }
    const usual = archivalUri.read(domainDefaults?.archival[archive]?.uri ?? '');
    if (JSON.stringify(usual) === JSON.stringify(uri)) return undefined;
    return archiveCheck(section, uri, { archive, scheme: uri.scheme, uri: text }).open(deps);
  };
}

function archiveRow(section: ArchiveOptions, uri: ArchivalUri, place: ArchivePlace): ProbeRow {
  const { scheme, target, open: openArchive, key } = archiveCheck(section, uri, place);
  const open = async (deps: ProbeDeps): Promise<Probe> => {
    const probe = await openArchive(deps);
    if (!scheme) return probe;
    const { countingDeletions } = await import('./archival/unarchived.ts');
    return countingDeletions(probe, target, deps);
  };
  return {
    name: `archive/${place.archive}`,
    kind: 'archive',
    target: place.uri,
    service: '',
    schedule: archiveSchedule,
    shows: scheme
      ? { up: { name: 'svc_archival_up', labels: { archive: place.archive, scheme: place.scheme } } }
      : {},
    reasons: archiveFailureReasons,
    key,
    open,
  };
}

function unknownScheme(scheme: string): Probe {
  const msg = `archives of scheme ${scheme} cannot be checked; known schemes: ${Object.keys(schemes).join(', ')}`;
  return { check: async () => ({ reason: 'failed', msg }) };
}
