import { archivalFaults } from '../config/cross/archival.ts';
import { clusterFaults, clusterNumberFaults } from '../config/cross/clusters.ts';
import type { MapNode } from '../config/tree.ts';
import { entriesAt, itemsAt, nodeAt, placeOf, type TreeNode, textAt } from '../config/tree.ts';
import type { Graft } from './graft.ts';
import { serviceStores } from './stores.ts';

/** What belongs to the cluster: stores, peer clusters, archives. What is at fault is judged, not taken. */
export function discoverCluster(service: TreeNode, agent: MapNode, graft: Graft): void {
  discoverStores(service, agent, graft);
  const groupFaults = [...clusterFaults(service), ...clusterNumberFaults(service)];
  if (nodeAt(service, 'clusterGroupMetadata') && groupFaults.length === 0) discoverGroup(service, graft);
  if (archivalFaults(service).length === 0) discoverArchives(service, graft);
}

/** Stores by name under `stores`, which the agent's own list is laid over; credentials only where it asks for them. */
function discoverStores(service: TreeNode, agent: MapNode, graft: Graft): void {
  const asking = new Set(
    itemsAt(agent, 'stores').flatMap((item) =>
      textAt(item, 'credentials') === 'service' ? (textAt(item, 'name') ?? []) : [],
    ),
  );
  for (const store of serviceStores(service)) {
    const path = ['stores', store.name];
    graft.put([...path, 'name'], store.name, store.place);
    graft.put([...path, 'kind'], store.kind, store.place);
    graft.put([...path, 'address'], store.address, store.place);
    for (const [database, found] of Object.entries(store.databases)) {
      graft.put([...path, 'databases', database], found.name, found.place);
    }
    if (!asking.has(store.name)) continue;
    if (store.user?.value) graft.put([...path, 'user'], store.user.value, store.user.place);
    if (store.password?.value) graft.put([...path, 'password'], store.password.value, store.password.place);
  }
}

const groupKeys = ['failoverVersionIncrement', 'primaryClusterName', 'currentClusterName'] as const;
const clusterKeys = ['enabled', 'initialFailoverVersion', 'rpcName', 'rpcAddress', 'rpcTransport'] as const;

function discoverGroup(service: TreeNode, graft: Graft): void {
  const path = ['clusterGroupMetadata'];
  copy(service, path, groupKeys, graft);
  for (const [name] of entriesAt(service, ...path, 'clusterGroup')) {
    copy(service, [...path, 'clusterGroup', name], clusterKeys, graft);
  }
}

function discoverArchives(service: TreeNode, graft: Graft): void {
  for (const section of ['history', 'visibility']) {
    copy(service, ['archival', section], ['status', 'enableRead'], graft);
    copy(service, ['archival', section, 'provider', 'objectstore'], ['region', 'endpoint'], graft);
    copy(service, ['archival', section, 'provider', 'filestore'], ['fileMode', 'dirMode'], graft);
    copy(service, ['domainDefaults', 'archival', section], ['status', 'URI'], graft);
  }
}

/** Takes the keys that we know; the service's files may have more. */
function copy(service: TreeNode, path: readonly string[], keys: readonly string[], graft: Graft): void {
  for (const key of keys) {
    const node = nodeAt(service, ...path, key);
    if (node?.kind === 'scalar') graft.put([...path, key], node.value, placeOf(service, [...path, key]));
  }
}
