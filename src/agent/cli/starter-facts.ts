import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { addressesConflict, dialHost, formatAddress, parseAddress } from '../../core/address.ts';
import { roles as usualRoles } from '../../core/catalog.ts';
import { faultLine, oneOf, usageError } from '../../core/errors.ts';
import { findProgram } from '../../probes/command.ts';
import { machineAddresses } from '../config/environment.ts';
import { discover, serviceListeners, serviceStores } from '../config/service-files/discover.ts';
import { readServiceFiles } from '../config/service-files/read.ts';
import { entriesAt, type MapNode, scalarAt, type TreeNode, textAt } from '../config/tree.ts';
import type { Discovered } from '../config/types.ts';
import { type StarterStore, starterStores } from './starter-stores.ts';

/** What the starter configuration needs from the service's files. */
export interface StarterFacts {
  roles: readonly string[];
  serviceConfig: readonly string[];
  /** Address of the agent's status page, at a port that no role uses. */
  pullAddress: string;
  adminAddress: string;
  /** Whether the service's files name the log. */
  logKnown: boolean;
  /** Whether the service's files name this cluster. */
  clusterKnown: boolean;
  /** Every setting that was found in the files; none of them is secret. */
  found: readonly Discovered[];
  /** Health checks by role. */
  health: ReadonlyMap<string, string>;
  stores: readonly StarterStore[];
  /** host:port of the frontend, if it is known; `{address}` if the cluster group has it for each cluster. */
  frontend: string;
  /** Domains that the log of the service names. */
  domains: readonly string[];
  /** Whether the client is installed on this host. */
  hasClient: boolean;
  /** Programs that accompany the service. */
  companions: readonly { name: string; scrape: string }[];
}

/** The service's own command-line client. */
export const client = 'cadence';

/** How many bytes at the end of the service's log are searched for domains. */
const searchedBytes = 1024 * 1024;

/** Domains that the end of the service's log names, except the service's internal domains. */
function domainsIn(path: string): string[] {
  let text = '';
  try {
    // A pipe or a terminal, such as /dev/stdout, would block.
    if (!statSync(path).isFile()) return [];
    const file = openSync(path, 'r');
    try {
      const from = Math.max(0, fstatSync(file).size - searchedBytes);
      const buffer = Buffer.alloc(searchedBytes);
      text = buffer.toString('utf8', 0, readSync(file, buffer, 0, searchedBytes, from));
    } finally {
      closeSync(file);
    }
  } catch {
    // The service has not written anything yet, or the agent cannot read the log. The names have to be added by hand.
  }
  const names = [...text.matchAll(/"wf-domain-name":"([\w.-]+)"/g)].map(([, name]) => name!);
  return [...new Set(names)].filter((name) => !/-(?:system|batcher)$/.test(name)).sort();
}

/** Whether the cluster group has the gRPC address of each enabled cluster's frontend. */
function knowsClusters(tree: TreeNode): boolean {
  const group = ['clusterGroupMetadata', 'clusterGroup'];
  const enabled = entriesAt(tree, ...group).filter(
    ([name]) => scalarAt(tree, ...group, name, 'enabled') !== false,
  );
  const isKnown = ([name]: [string, unknown]) =>
    textAt(tree, ...group, name, 'rpcAddress') !== undefined &&
    textAt(tree, ...group, name, 'rpcTransport') === 'grpc';
  return enabled.length > 0 && enabled.every(isKnown);
}

/**
 * The health check of a role at its gRPC port. For a role without a gRPC port, such as the worker, only the connection is
 * checked.
 */
function healthOf(tree: TreeNode, role: string): [string, string][] {
  const rpc = ['services', role, 'rpc'];
  const host = textAt(tree, ...rpc, 'bindOnIP') ?? '127.0.0.1';
  const ports = [
    ['grpc', scalarAt(tree, ...rpc, 'grpcPort')],
    ['tcp', scalarAt(tree, ...rpc, 'port')],
  ] as const;
  const [scheme, port] = ports.find(([, port]) => Number(port) > 0 && Number(port) < 65_536) ?? [];
  if (scheme === undefined) return [];
  return [[role, `${scheme}://${formatAddress({ host: dialHost(host), port: Number(port) })}`]];
}

/** Programs that load or check the service. They have their own configuration files; their metrics are scraped like a role's. */
const companions = ['bench', 'canary'];

/** The scrape of each companion in the files, at the address in its file. */
function companionsIn(tree: MapNode): { name: string; scrape: string }[] {
  const address = parseAddress(textAt(tree, 'metrics', 'pullmetrics', 'listenAddress') ?? '');
  return companions.flatMap((name) => {
    if (!tree.entries.has(name)) return [];
    const { host, port } = address ?? { host: '127.0.0.1', port: 8005 };
    return [{ name, scrape: `http://${formatAddress({ host: dialHost(host), port })}/metrics` }];
  });
}

/** Reads the service's files for `init`. Throws `usage` if one of them cannot be read. */
export async function readForStarter(
  files: readonly string[],
  named: readonly string[],
  { cwd, env }: { cwd: string; env: Readonly<Record<string, string | undefined>> },
): Promise<StarterFacts> {
  const { tree, treeOf, findings } = readServiceFiles(files, cwd, env);
  const [first] = findings;
  if (first) throw usageError('--service-config', faultLine(first));
  const found = entriesAt(tree, 'services').map(([name]) => name);
  for (const role of named) oneOf('--role', role, [...new Set([...found, ...usualRoles])], 'role');
  const wanted = named.length > 0 ? named : found;
  const roles = wanted.length > 0 ? wanted : usualRoles;
  const taken = serviceListeners(tree, roles).map(({ address }) => address);
  const health = new Map(roles.flatMap((role) => healthOf(tree, role)));
  const bound = [...health.values()].map((url) => url.replace(/^\w+:\/\//, ''));
  const pullAddress = freeAddress('0.0.0.0', 9464, [...taken, ...bound]);
  const nothing: MapNode = { ...tree, entries: new Map() };
  const request = {
    service: tree,
    serviceOf: treeOf,
    agent: nothing,
    scope: 'all',
    roles,
    localHosts: machineAddresses(),
  } as const;
  const discovery = discover(request);
  const logs = new Set(roles.flatMap((role) => textAt(treeOf(role), 'log', 'outputFile') ?? []));
  return {
    found: discovery.itemsIn(discovery.tree),
    health,
    stores: await starterStores(serviceStores(tree), env),
    frontend: knowsClusters(tree)
      ? '{address}'
      : (health.get('frontend')?.replace(/^\w+:\/\//, '') ?? 'frontend:7833'),
    domains: [...new Set([...logs].flatMap(domainsIn))].sort(),
    hasClient: findProgram(client, env.PATH) !== undefined,
    companions: named.length > 0 ? [] : companionsIn(tree),
    roles,
    serviceConfig: files,
    pullAddress,
    adminAddress: freeAddress('127.0.0.1', 9465, [...taken, ...bound, pullAddress]),
    logKnown: logs.size > 0,
    clusterKnown: textAt(tree, 'clusterGroupMetadata', 'currentClusterName') !== undefined,
  };
}

/** The first address, from a port upwards, that no role of the service has. */
function freeAddress(host: string, firstPort: number, taken: readonly string[]): string {
  const localHosts = machineAddresses();
  const others = taken.flatMap((address) => parseAddress(address) ?? []);
  let port = firstPort;
  while (others.some((other) => addressesConflict({ host, port }, other, localHosts))) port++;
  return formatAddress({ host, port });
}
