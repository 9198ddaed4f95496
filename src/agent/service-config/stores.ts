import { formatAddress, parseAddress } from '../../core/address.ts';
import { dialAddress } from '../../core/written.ts';
import type { StoreKind } from '../../probes/stores/options.ts';
import type { Place } from '../config/loaded.ts';
import { nodeAt, placeOf, scalarAt, type TreeNode, type TreePath, textAt } from '../config/tree.ts';

/** One store of the service's files; several databases on one address are one store. */
export interface ServiceStore {
  name: string;
  kind: StoreKind;
  address: string;
  place: Place;
  databases: Partial<Record<'persistence' | 'visibility', { name: string; place: Place }>>;
  user?: { value: string; place: Place };
  password?: { value: string; place: Place };
}

const usualPorts: Readonly<Record<StoreKind, number>> = { widecolumn: 9042, mysql: 3306, postgres: 5432 };

/** Stores as real service files describe them: `persistence.datastores`, of which two names are in use. */
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

function sqlKind(plugin: string | undefined): StoreKind | undefined {
  if (plugin === undefined) return undefined;
  if (/mysql|mariadb/.test(plugin)) return 'mysql';
  return /postgres/.test(plugin) ? 'postgres' : undefined;
}

function firstHost(tree: TreeNode, path: TreePath): string | undefined {
  const host = textAt(tree, ...path, 'hosts')
    ?.split(',')[0]
    ?.trim();
  const port = scalarAt(tree, ...path, 'port') ?? usualPorts.widecolumn;
  return host ? dialAddress.read(formatAddress({ host, port: Number(port) })) : undefined;
}

function withPort(address: string | undefined, kind: StoreKind): string | undefined {
  if (!address) return undefined;
  return parseAddress(address)
    ? dialAddress.read(address)
    : dialAddress.read(`${address}:${usualPorts[kind]}`);
}
