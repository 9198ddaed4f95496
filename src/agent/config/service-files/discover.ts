import { dialHost, formatAddress, isLoopback, isWildcard, parseAddress } from '../../../core/address.ts';
import { withoutUrlSecrets } from '../../../core/redacted.ts';
import { sanitizeName } from '../../../core/registry/labels.ts';
import { readDialAddress } from '../../../core/text-formats.ts';
import type { StoreKindName } from '../../../probes/stores/store-options.ts';
import {
  archiveSections,
  clusterFaults,
  clusterNumberFaults,
  isArchiveUsable,
  reporterKeys,
} from '../shared-rules.ts';
import {
  entriesAt,
  itemsAt,
  type MapEntry,
  type MapNode,
  mayBeSecret,
  nodeAt,
  pathText,
  placeOf,
  type Scalar,
  scalarAt,
  type TreeNode,
  type TreePath,
  textAt,
} from '../tree.ts';
import type { Discovered, Position, Scope } from '../types.ts';
import { readGoAddress } from './violations.ts';

interface DiscoveryRequest {
  /** The service's files, merged into one. */
  service: MapNode;
  /** The files that a role reads, merged into one. */
  serviceOf(role: string): MapNode;
  agent: MapNode;
  scope: Scope;
  /** The services of the agent's configuration that are watched. */
  roles: readonly string[];
  localHosts: ReadonlySet<string>;
}

/** Reads settings from the service's files, by scope (docs/how-to/install.md). */
export function discover({
  service,
  serviceOf,
  agent,
  scope,
  roles,
  localHosts,
}: DiscoveryRequest): ConfigBuilder {
  const discovery = createConfigBuilder(service.place);
  if (scope !== 'cluster') discoverHost({ service, serviceOf }, roles, localHosts, discovery);
  if (scope !== 'host') discoverCluster(service, agent, discovery);
  return discovery;
}

/** Settings of the roles on this host: log file, scrape endpoint and UDP port. */
function discoverHost(
  { service, serviceOf }: Pick<DiscoveryRequest, 'service' | 'serviceOf'>,
  roles: readonly string[],
  localHosts: ReadonlySet<string>,
  discovery: ConfigBuilder,
) {
  const known = new Set(entriesAt(service, 'services').map(([name]) => name));
  const ports: PushedPorts = new Map();
  for (const role of roles) {
    if (known.size > 0 && !known.has(role)) continue;
    discoverLog(serviceOf(role), role, discovery);
    const reporters = reporterKeys.filter(
      (key) => nodeAt(service, 'services', role, 'metrics', key) !== undefined,
    );
    // The service does not start with two reporters.
    if (reporters.length !== 1) continue;
    if (reporters[0] === 'pullmetrics') discoverScrape(service, role, discovery);
    if (reporters[0] === 'pushmetrics') discoverPort(service, role, localHosts, ports, discovery);
  }
}

function discoverLog(service: TreeNode, role: string, discovery: ConfigBuilder): void {
  const file = textAt(service, 'log', 'outputFile');
  if (!file) return;
  const logs = ['services', role, 'logs'];
  discovery.put([...logs, 'paths'], [literalGlob(file)], placeOf(service, ['log', 'outputFile']));
  const encoding = textAt(service, 'log', 'encoding');
  if (encoding === 'json' || encoding === 'console') {
    discovery.put([...logs, 'encoding'], encoding, placeOf(service, ['log', 'encoding']));
  }
  const levelKey = textAt(service, 'log', 'levelKey');
  if (levelKey) discovery.put([...logs, 'levelKey'], levelKey, placeOf(service, ['log', 'levelKey']));
}

/** A file's name as a pattern that matches only this file. */
const literalGlob = (file: string): string => file.replace(/[*?[\]{}()!\\]/g, '\\$&');

function discoverScrape(service: TreeNode, role: string, discovery: ConfigBuilder): void {
  const path = ['services', role, 'metrics', 'pullmetrics'];
  const text = textAt(service, ...path, 'listenAddress');
  const network = scalarAt(service, ...path, 'listenNetwork') ?? 'tcp';
  const address = parseAddress(readGoAddress(text ?? '') ?? '');
  if (!address || address.port === 0 || network === 'unix') return;
  const page = textAt(service, ...path, 'handlerPath') ?? '/metrics';
  const host = formatAddress({ ...address, host: dialHost(address.host) });
  const url = `http://${host}${page.startsWith('/') ? page : `/${page}`}`;
  discovery.put(['services', role, 'scrape', 'url'], url, placeOf(service, [...path, 'listenAddress']));
  const prefix = ['services', role, 'metrics', 'prefix'];
  const named = sanitizeName(textAt(service, ...prefix) ?? '');
  if (named) discovery.put(['services', role, 'scrape', 'prefix'], named, placeOf(service, prefix));
}

/** The role that listens on each port, and the prefixes of all roles that push to it. */
type PushedPorts = Map<string, { role: string; prefixes: string[] }>;

/**
 * Handles the port to which a role pushes. Roles of one process push to one port: the first role listens for all, and
 * `svc_service` distinguishes them.
 */
function discoverPort(
  service: TreeNode,
  role: string,
  localHosts: ReadonlySet<string>,
  taken: PushedPorts,
  discovery: ConfigBuilder,
): void {
  const metrics = ['services', role, 'metrics'];
  const path = [...metrics, 'pushmetrics', 'hostPort'];
  const address = parseAddress(textAt(service, ...path) ?? '');
  if (!address?.port) return;
  const { host } = address;
  if (!isLoopback(host) && !isWildcard(host) && !localHosts.has(host)) return;
  const listen = formatAddress(address);
  const known = taken.get(listen);
  const port = known ?? { role, prefixes: [] };
  taken.set(listen, port);
  const statsd = ['services', port.role, 'statsd'];
  if (!known) discovery.put([...statsd, 'listen'], listen, placeOf(service, path));
  const parts = [textAt(service, ...metrics, 'pushmetrics', 'prefix'), textAt(service, ...metrics, 'prefix')];
  const prefix = parts.filter(Boolean).join('.');
  if (prefix === '' || port.prefixes.includes(prefix)) return;
  port.prefixes.push(prefix);
  discovery.put([...statsd, 'prefix'], [...port.prefixes], placeOf(service, path));
}

/** Addresses at which watched roles listen. The agent's own listeners are checked against them. */
export function serviceListeners(
  service: TreeNode,
  roles: readonly string[],
): { role: string; address: string }[] {
  return roles.flatMap((role) => {
    const text = textAt(service, 'services', role, 'metrics', 'pullmetrics', 'listenAddress');
    const address = text === undefined ? undefined : readGoAddress(text);
    return address === undefined ? [] : [{ role, address }];
  });
}

/** Reads the settings of the cluster: stores, peer clusters and archives. Invalid settings become findings and are not used. */
function discoverCluster(service: TreeNode, agent: MapNode, discovery: ConfigBuilder): void {
  discoverStores(service, agent, discovery);
  if (nodeAt(service, 'clusterGroupMetadata') && !hasGroupFaults(service)) discoverGroup(service, discovery);
  for (const section of archiveSections)
    if (isArchiveUsable(service, section)) discoverArchive(service, section, discovery);
}

export const hasGroupFaults = (service: TreeNode): boolean =>
  clusterFaults(service).length + clusterNumberFaults(service).length > 0;

/**
 * Reads the stores by name, to merge them with the agent's own list. Credentials are used only for entries of that list with
 * `credentials: service`.
 */
function discoverStores(service: TreeNode, agent: MapNode, discovery: ConfigBuilder): void {
  const asking = new Set(
    itemsAt(agent, 'stores').flatMap((item) =>
      textAt(item, 'credentials') === 'service' ? (textAt(item, 'name') ?? []) : [],
    ),
  );
  for (const store of serviceStores(service)) {
    const path = ['stores', store.name];
    discovery.put([...path, 'name'], store.name, store.place);
    discovery.put([...path, 'kind'], store.kind, store.place);
    discovery.put([...path, 'address'], store.address, store.place);
    for (const [database, found] of Object.entries(store.databases)) {
      discovery.put([...path, 'databases', database], found.name, found.place);
    }
    if (!asking.has(store.name)) continue;
    if (store.user?.value) discovery.put([...path, 'user'], store.user.value, store.user.place);
    if (store.password?.value)
      discovery.put([...path, 'password'], store.password.value, store.password.place);
  }
}

const groupKeys = ['failoverVersionIncrement', 'primaryClusterName', 'currentClusterName'] as const;
const clusterKeys = [
  'enabled',
  'initialFailoverVersion',
  'newInitialFailoverVersion',
  'rpcName',
  'rpcAddress',
  'rpcTransport',
] as const;

function discoverGroup(service: TreeNode, discovery: ConfigBuilder): void {
  const path = ['clusterGroupMetadata'];
  copy(service, path, groupKeys, discovery);
  for (const [name] of entriesAt(service, ...path, 'clusterGroup')) {
    copy(service, [...path, 'clusterGroup', name], clusterKeys, discovery);
  }
}

/**
 * The settings of an archive provider that the agent uses, by the provider's kind. Of other kinds only their presence is used.
 */
const providerKeys: Readonly<Record<string, readonly string[]>> = {
  objectstore: ['region', 'endpoint'],
  filestore: ['fileMode', 'dirMode'],
};

function discoverArchive(service: TreeNode, section: string, discovery: ConfigBuilder): void {
  copy(service, ['archival', section], ['status', 'enableRead'], discovery);
  for (const [kind] of entriesAt(service, 'archival', section, 'provider')) {
    const path = ['archival', section, 'provider', kind];
    discovery.putMap(path, placeOf(service, path));
    copy(service, path, Object.hasOwn(providerKeys, kind) ? providerKeys[kind]! : [], discovery);
  }
  copy(service, ['domainDefaults', 'archival', section], ['status', 'URI'], discovery);
}

/** Copies the known keys; the service's files may have further keys. */
function copy(
  service: TreeNode,
  path: readonly string[],
  keys: readonly string[],
  discovery: ConfigBuilder,
): void {
  for (const key of keys) {
    const node = nodeAt(service, ...path, key);
    if (node?.kind === 'scalar') discovery.put([...path, key], node.value, placeOf(service, [...path, key]));
  }
}

/** One store of the service's files; several databases on one address are one store. */
export interface ServiceStore {
  name: string;
  kind: StoreKindName;
  address: string;
  place: Position;
  databases: Partial<Record<'persistence' | 'visibility', { name: string; place: Position }>>;
  user?: { value: string; place: Position };
  password?: { value: string; place: Position };
}

const usualPorts: Readonly<Record<StoreKindName, number>> = { widecolumn: 9042, mysql: 3306, postgres: 5432 };

/** The stores as real service files describe them: in `persistence.datastores`, of which two names are in use. */
export function serviceStores(tree: TreeNode): ServiceStore[] {
  const stores: ServiceStore[] = [];
  for (const [database, key] of [
    ['persistence', 'defaultStore'],
    ['visibility', 'visibilityStore'],
  ] as const) {
    const name = textAt(tree, 'persistence', key);
    const found = name === undefined ? undefined : datastore(tree, name, database);
    if (!found) continue;
    const same = stores.find(({ kind, address }) => kind === found.kind && address === found.address);
    if (same) same.databases = { ...found.databases, ...same.databases };
    else stores.push(found);
  }
  return stores;
}

function datastore(
  tree: TreeNode,
  name: string,
  database: 'persistence' | 'visibility',
): ServiceStore | undefined {
  const base: TreePath = ['persistence', 'datastores', name];
  const wide = ['nosql', 'cassandra'].find((key) => nodeAt(tree, ...base, key) !== undefined);
  if (wide && (textAt(tree, ...base, wide, 'pluginName') ?? 'cassandra') !== 'cassandra') return undefined;
  const path = [...base, wide ?? 'sql'];
  const kind = wide ? 'widecolumn' : sqlKind(textAt(tree, ...path, 'pluginName'));
  const address =
    kind && (wide ? firstHost(tree, path) : withPort(textAt(tree, ...path, 'connectAddr'), kind));
  if (!kind || !address) return undefined;
  const text = (key: string) => {
    const value = scalarAt(tree, ...path, key);
    return value === undefined ? undefined : { value: String(value), place: placeOf(tree, [...path, key]) };
  };
  const named = text(wide ? 'keyspace' : 'databaseName');
  return {
    name,
    kind,
    address,
    place: placeOf(tree, [...path, wide ? 'hosts' : 'connectAddr']),
    databases: named ? { [database]: { name: named.value, place: named.place } } : {},
    user: text('user'),
    password: text('password'),
  };
}

/** Why the agent does not watch a datastore of the service's files; undefined for a datastore that it can watch. */
export function unwatchedStore(tree: TreeNode, name: string): string | undefined {
  const base: TreePath = ['persistence', 'datastores', name];
  const plugin = textAt(tree, ...base, 'sql', 'pluginName');
  const shards = itemsAt(tree, ...base, 'sql', 'multipleDatabasesConfig').length;
  const kinds = entriesAt(tree, ...base).map(([kind]) => kind);
  if (scalarAt(tree, ...base, 'sql', 'useMultipleDatabases') === true || shards > 0) {
    return `not watched, because it is spread over ${shards > 0 ? shards : 'several'} databases; add each of them to stores`;
  }
  if (plugin !== undefined && sqlKind(plugin) === undefined) {
    return `not watched, because its plugin is ${plugin}; the agent watches mysql and postgres`;
  }
  const other = kinds.find((kind) => !['sql', 'nosql', 'cassandra'].includes(kind));
  if (other !== undefined) {
    return `not watched, because it is of the kind ${other}; the agent watches sql, nosql and cassandra`;
  }
  const nosql = textAt(tree, ...base, 'nosql', 'pluginName');
  if (nosql !== undefined && nosql !== 'cassandra') {
    return `not watched, because its plugin is ${nosql}; the agent watches cassandra`;
  }
  return datastore(tree, name, 'persistence') === undefined
    ? 'not watched, because it has no address that the agent can read; add it to stores'
    : undefined;
}

function sqlKind(plugin: string | undefined): StoreKindName | undefined {
  if (plugin === undefined) return undefined;
  if (/mysql|mariadb/.test(plugin)) return 'mysql';
  return /postgres/.test(plugin) ? 'postgres' : undefined;
}

function firstHost(tree: TreeNode, path: TreePath): string | undefined {
  const host = textAt(tree, ...path, 'hosts')
    ?.split(',')[0]
    ?.trim();
  const port = scalarAt(tree, ...path, 'port') ?? usualPorts.widecolumn;
  return host ? readDialAddress(formatAddress({ host, port: Number(port) })) : undefined;
}

function withPort(address: string | undefined, kind: StoreKindName): string | undefined {
  if (!address) return undefined;
  return parseAddress(address) ? readDialAddress(address) : readDialAddress(`${address}:${usualPorts[kind]}`);
}

/** Builds the part of an agent's configuration that comes from the service's files. */
interface ConfigBuilder {
  /** Puts a value at a path of the agent's configuration, together with its place in the service's files. */
  put(path: readonly string[], value: Scalar | readonly string[], place: Position): void;
  /** Puts an empty map at a path, if only the presence of something is known. */
  putMap(path: readonly string[], place: Position): void;
  readonly tree: MapNode;
  /** The values from the service's files that are still in a tree that was made from this one. */
  itemsIn(tree: TreeNode): Discovered[];
}

const newMap = (place: Position): MapNode => ({ kind: 'map', place, entries: new Map() });

/** Yields every single value and every list of such values. */
function* leavesOf(node: TreeNode): Generator<TreeNode> {
  if (node.kind !== 'map') yield node;
  if (node.kind === 'list') for (const item of node.items) yield* leavesOf(item);
  if (node.kind === 'map') for (const { node: value } of node.entries.values()) yield* leavesOf(value);
}

function createConfigBuilder(top: Position): ConfigBuilder {
  const tree = newMap(top);
  const discovered = new Map<TreeNode, Discovered>();

  const set = (path: readonly string[], entry: MapEntry) => {
    let map = tree;
    for (const step of path.slice(0, -1)) {
      const below = map.entries.get(step)?.node;
      const next = below?.kind === 'map' ? below : newMap(entry.key);
      map.entries.set(step, { key: entry.key, node: next });
      map = next;
    }
    map.entries.set(path.at(-1)!, entry);
  };

  return {
    tree,
    putMap: (path, place) => set(path, { key: place, node: newMap(place) }),
    put(path, value, place) {
      const scalar = (of: Scalar): TreeNode => ({ kind: 'scalar', place, value: of });
      const node: TreeNode = Array.isArray(value)
        ? { kind: 'list', place, items: value.map(scalar) }
        : scalar(value as Scalar);
      set(path, { key: place, node });
      const text = Array.isArray(value) ? value.join(', ') : String(value);
      const shown = mayBeSecret(path) ? '(secret)' : withoutUrlSecrets(text);
      discovered.set(node, { path: pathText(path), value: shown, place });
    },
    itemsIn(other) {
      const left = new Set(leavesOf(other));
      return [...discovered].filter(([node]) => left.has(node)).map(([, found]) => found);
    },
  };
}
