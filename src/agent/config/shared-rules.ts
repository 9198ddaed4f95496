import {
  type Address,
  addressesConflict,
  dialHost,
  formatAddress,
  parseAddress,
} from '../../core/address.ts';
import { archivalUri, schemes } from '../../probes/archival/archives.ts';
import {
  entriesAt,
  faultAt,
  type MapNode,
  nodeAt,
  pathText,
  placedFault,
  placeOf,
  scalarAt,
  type TreeNode,
  type TreePath,
  textAt,
} from './tree.ts';
import { defaultAdminAddress, type PlacedFault, type Position } from './types.ts';

/** Input of a rule over the whole configuration. */
export interface RuleInput {
  /** `agent.yaml` merged over the discovered settings, including invalid parts. */
  tree: MapNode;
  /** The services that are watched. */
  roles: readonly string[];
  /** Addresses of the machine, which a wildcard covers. */
  localHosts: ReadonlySet<string>;
  /** Addresses at which watched roles listen according to the service's own files; `role` is used in the message. */
  serviceListeners: readonly { role: string; address: string }[];
}

/** A rule that finds faults between parts that are valid by themselves; it ignores invalid parts. */
export type ConsistencyRule = (whole: RuleInput) => PlacedFault[];

export const reporterKeys = ['pullmetrics', 'pushmetrics', 'hostedmetrics'] as const;

/** Paths of every `metrics` block. */
function metricsPaths(tree: TreeNode): TreePath[] {
  const ofServices = entriesAt(tree, 'services').map(([name]) => ['services', name, 'metrics']);
  return [['metrics'], ...ofServices].filter((path) => nodeAt(tree, ...path)?.kind === 'map');
}

/** Blocks with more than one reporter: these reporters, and the place of the last. */
export function tooManyReporters(
  tree: TreeNode,
  path: TreePath,
): { names: string; place: Position } | undefined {
  const found = reporterKeys.filter((key) => nodeAt(tree, ...path, key) !== undefined);
  if (found.length < 2) return undefined;
  const places = found.map((key) => placeOf(tree, [...path, key]));
  const last = places.reduce((one, other) => (isBefore(one, other) ? other : one));
  return { names: found.join(' and '), place: last };
}

const isBefore = (one: Position, other: Position): boolean =>
  one.line === other.line ? one.column < other.column : one.line < other.line;

/** At most one reporter is allowed in a block (spec, Errors 1). */
export const oneReporter: ConsistencyRule = ({ tree }) =>
  metricsPaths(tree).flatMap((path) => {
    const clash = tooManyReporters(tree, path);
    if (!clash) return [];
    return [
      placedFault(
        clash.place,
        path,
        `more than one reporter, ${clash.names}; keep one, and set the others to ~`,
      ),
    ];
  });

interface Socket {
  path: TreePath;
  address: Address;
}

const socketAt = (tree: TreeNode, path: TreePath, otherwise?: string): Socket[] => {
  const address = parseAddress(textAt(tree, ...path) ?? otherwise ?? '');
  return address ? [{ path, address }] : [];
};

/** The sockets on which the agent will listen. Services that are not watched open none. */
function ourListeners({ tree, roles }: RuleInput): Socket[] {
  const admin = tree.entries.get('admin')?.node;
  const adminOff = admin?.kind === 'scalar' && admin.value === null;
  return [
    ...socketAt(tree, ['metrics', 'pullmetrics', 'listenAddress']),
    ...roles.flatMap((role) => [
      ...socketAt(tree, ['services', role, 'metrics', 'pullmetrics', 'listenAddress']),
      ...socketAt(tree, ['services', role, 'statsd', 'tcp']),
    ]),
    ...(adminOff ? [] : socketAt(tree, ['admin', 'listenAddress'], defaultAdminAddress)),
    ...socketAt(tree, ['admin', 'health']),
  ];
}

function datagramListeners({ tree, roles }: RuleInput): Socket[] {
  return roles.flatMap((role) => {
    const path = ['services', role, 'statsd'];
    return nodeAt(tree, ...path)?.kind === 'map' ? socketAt(tree, [...path, 'listen']) : socketAt(tree, path);
  });
}

/** Faults for listeners of the agent that cannot both be bound. */
function clashes(sockets: readonly Socket[], { tree, localHosts }: RuleInput) {
  return sockets.flatMap((socket, index) => {
    const other = sockets
      .slice(0, index)
      .find(({ address }) => addressesConflict(address, socket.address, localHosts));
    if (!other) return [];
    // A default that conflicts is not written in the file, so the fault is at the address that is.
    const isDefault = !nodeAt(tree, ...socket.path) && nodeAt(tree, ...other.path);
    const [at, taken] = isDefault ? [other, socket] : [socket, other];
    const message = `already the address of ${pathText(taken.path)}; use another port`;
    return [placedFault(placeOf(tree, at.path), at.path, message, formatAddress(at.address))];
  });
}

export const distinctListeners: ConsistencyRule = (whole) => [
  ...clashes(ourListeners(whole), whole),
  ...clashes(datagramListeners(whole), whole),
];

/** Addresses of watched roles: scrape and health targets, and the addresses in the service's own files. */
function watched({
  tree,
  roles,
  serviceListeners,
}: RuleInput): { role: string; address: Address; what: string }[] {
  const targets = roles.flatMap((role) =>
    (['scrape', 'health'] as const).flatMap((key) => {
      const url = textAt(tree, 'services', role, key) ?? textAt(tree, 'services', role, key, 'url');
      const address = url === undefined ? undefined : addressOf(url);
      return address ? [{ role, address, what: `services.${role}.${key}` }] : [];
    }),
  );
  const own = serviceListeners.flatMap(({ role, address }) => {
    const parsed = parseAddress(address);
    return parsed ? [{ role, address: parsed, what: `${role}’s own files` }] : [];
  });
  return [...targets, ...own];
}

const usualPorts: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

function addressOf(url: string): Address | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (usualPorts[protocol] ?? 0) : Number(port),
  };
}

/**
 * Faults for a listener of the agent on a role's address: it would prevent the role from binding it, or make the agent scrape
 * itself.
 */
export const listenersApart: ConsistencyRule = (whole) => {
  const roles = watched(whole);
  return ourListeners(whole).flatMap(({ path, address }) => {
    const taken = roles.find((role) => addressesConflict(address, role.address, whole.localHosts));
    if (!taken) return [];
    const shown = formatAddress({ ...taken.address, host: dialHost(taken.address.host) });
    const message = `the address of the watched role ${taken.role} (${taken.what}, ${shown}); use another port`;
    return [placedFault(placeOf(whole.tree, path), path, message, formatAddress(address))];
  });
};

const group: TreePath = ['clusterGroupMetadata'];

/** Faults in the clusters of the agent's or the service's configuration (spec, Versioning 1). */
export function clusterFaults(tree: TreeNode): PlacedFault[] {
  if (nodeAt(tree, ...group)?.kind !== 'map') return [];
  return [...versionFaults(tree), ...nameFaults(tree)];
}

/** Faults in numbers of the service's files. For `agent.yaml`, the schema covers them already. */
export function clusterNumberFaults(tree: TreeNode): PlacedFault[] {
  const atLeast = (path: TreePath, least: number): PlacedFault[] => {
    const value = scalarAt(tree, ...path);
    if (typeof value !== 'number' || value >= least) return [];
    return [faultAt(tree, path, `too small; use ${least} or more`)];
  };
  return [
    ...atLeast([...group, 'failoverVersionIncrement'], 1),
    ...entriesAt(tree, ...group, 'clusterGroup').flatMap(([name]) =>
      atLeast([...group, 'clusterGroup', name, 'initialFailoverVersion'], 0),
    ),
  ];
}

function versionFaults(tree: TreeNode): PlacedFault[] {
  const increment = scalarAt(tree, ...group, 'failoverVersionIncrement');
  const seen = new Map<number, string>();
  return entriesAt(tree, ...group, 'clusterGroup').flatMap(([name]) => {
    const path = [...group, 'clusterGroup', name, 'initialFailoverVersion'];
    const version = scalarAt(tree, ...path);
    if (typeof version !== 'number') return [];
    const other = seen.get(version);
    seen.set(version, other ?? name);
    if (other !== undefined) {
      return [
        faultAt(
          tree,
          path,
          `already the version of ${other}; give each cluster its own version, disabled clusters included`,
        ),
      ];
    }
    if (typeof increment !== 'number' || increment < 1 || version < increment) return [];
    return [
      faultAt(
        tree,
        path,
        `not below failoverVersionIncrement, which is ${increment}; use 0 to ${increment - 1}`,
      ),
    ];
  });
}

function nameFaults(tree: TreeNode): PlacedFault[] {
  const names = entriesAt(tree, ...group, 'clusterGroup').map(([name]) => name);
  if (names.length === 0) return [];
  return (['primaryClusterName', 'currentClusterName'] as const).flatMap((key) => {
    const path = [...group, key];
    const name = textAt(tree, ...path);
    if (name === undefined) return [];
    if (!names.includes(name)) return [faultAt(tree, path, `not in clusterGroup; use ${names.join(' or ')}`)];
    if (scalarAt(tree, ...group, 'clusterGroup', name, 'enabled') !== false) return [];
    return [faultAt(tree, path, 'not enabled in clusterGroup; enable it, or name another cluster')];
  });
}

export const archiveSections = ['history', 'visibility'] as const;

/** Faults in the archival blocks of the agent's or the service's configuration (spec, Archival configuration). */
export const archivalFaults = (tree: TreeNode): PlacedFault[] =>
  archiveSections.flatMap((section) => archiveFaults(tree, section));

type ArchiveSection = (typeof archiveSections)[number];

/** The fault of an archive's URI in the service's files that has another form. The agent's own URIs are checked with their values. */
export function uriFaults(service: TreeNode, section: ArchiveSection): PlacedFault[] {
  const path = ['domainDefaults', 'archival', section, 'URI'];
  const uri = textAt(service, ...path);
  if (uri === undefined || archivalUri.read(uri) !== undefined) return [];
  return [placedFault(placeOf(service, path), path, archivalUri.fault, uri)];
}

/** Whether the agent can watch an archive of the service's files. */
export const isArchiveUsable = (service: TreeNode, section: ArchiveSection): boolean =>
  archiveFaults(service, section).length + uriFaults(service, section).length === 0;

function archiveFaults(tree: TreeNode, section: ArchiveSection): PlacedFault[] {
  const cluster = ['archival', section];
  const domains = ['domainDefaults', 'archival', section];
  return [...statusFaults(tree, cluster, domains), ...placeFaults(tree, cluster, domains)];
}

/** Faults for settings that contradict each other. */
function statusFaults(tree: TreeNode, cluster: TreePath, domains: TreePath): PlacedFault[] {
  const status = textAt(tree, ...cluster, 'status');
  const faults: PlacedFault[] = [];
  if (scalarAt(tree, ...cluster, 'enableRead') === true && status !== undefined && status !== 'enabled') {
    const message = `reads are on while archival is ${status}; enable archival, or set enableRead to false`;
    faults.push(faultAt(tree, [...cluster, 'enableRead'], message));
  }
  if (status === 'disabled' && textAt(tree, ...domains, 'status') === 'enabled') {
    const message = 'domains archive while archival is disabled; enable archival, or set this to disabled';
    faults.push(faultAt(tree, [...domains, 'status'], message));
  }
  return faults;
}

const knownProviders: ReadonlySet<string> = new Set(Object.values(schemes).map((row) => row.providerKind));
/** Whether the agent knows the schemes of a provider. A provider of another name may serve any scheme. */
const isKnownProvider = (kind: string): boolean => knownProviders.has(kind);

/** Faults in the archive's URI and its provider. */
function placeFaults(tree: TreeNode, cluster: TreePath, domains: TreePath): PlacedFault[] {
  const isEnabled = textAt(tree, ...cluster, 'status') === 'enabled';
  const providers = entriesAt(tree, ...cluster, 'provider').map(([kind]) => kind);
  const uri = textAt(tree, ...domains, 'URI');
  const faults: PlacedFault[] = [];
  if (uri === undefined && (isEnabled || textAt(tree, ...domains, 'status') === 'enabled')) {
    faults.push(
      faultAt(tree, [...domains, 'URI'], 'missing while archival is enabled; name the directory or bucket'),
    );
  }
  if (!isEnabled) return faults;
  const scheme = /^([a-z][a-z0-9+.-]*):/.exec(uri ?? '')?.[1] ?? '';
  const wanted = Object.hasOwn(schemes, scheme) ? schemes[scheme]!.providerKind : undefined;
  if (providers.length === 0) {
    faults.push(
      faultAt(tree, [...cluster, 'provider'], 'missing while archival is enabled; name a provider'),
    );
  } else if (wanted !== undefined && !providers.includes(wanted) && providers.every(isKnownProvider)) {
    const message = `no provider for the scheme ${scheme} of ${domains.join('.')}.URI; add ${wanted}`;
    faults.push(faultAt(tree, [...cluster, 'provider'], message));
  }
  return faults;
}
