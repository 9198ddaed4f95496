import {
  type Entry,
  entriesAt,
  isNull,
  type ListNode,
  type MapNode,
  nodeAt,
  type TreeNode,
} from '../config/tree.ts';

/** Keys that real service files use, and what they mean in the spec's words. */
const reporters = { m3: 'hostedmetrics', statsd: 'pushmetrics', prometheus: 'pullmetrics' } as const;
const top = { clusterMetadata: 'clusterGroupMetadata' } as const;
const clusterGroup = { masterClusterName: 'primaryClusterName', clusterInformation: 'clusterGroup' } as const;
const providers = { s3store: 'objectstore', gstorage: 'objectstore' } as const;

type Spellings = Readonly<Record<string, string>>;

/** The map with keys in the spec's words; where both stand, the spec's own key counts. */
function respelled(node: TreeNode | undefined, spellings: Spellings): MapNode | undefined {
  if (node?.kind !== 'map') return undefined;
  const entries = new Map<string, Entry>();
  for (const [key, entry] of node.entries) {
    const word = Object.hasOwn(spellings, key) ? spellings[key]! : key;
    const own = node.entries.get(word);
    if (word === key || own === undefined || isNull(own.node)) entries.set(word, entry);
  }
  return { ...node, entries };
}

/** The map with one value changed by a function, or as it is where there is nothing to change. */
function changed(map: MapNode, key: string, change: (node: TreeNode) => TreeNode | undefined): MapNode {
  const entry = map.entries.get(key);
  const node = entry && change(entry.node);
  if (!entry || !node) return map;
  return { ...map, entries: new Map(map.entries).set(key, { ...entry, node }) };
}

/** Bounds as plain numbers, also where they are written `{upper: 0.1}`. */
function plainBounds(list: TreeNode): ListNode | undefined {
  if (list.kind !== 'list') return undefined;
  return { ...list, items: list.items.map((item) => nodeAt(item, 'upper') ?? item) };
}

function spelledMetrics(block: TreeNode): TreeNode | undefined {
  const map = respelled(block, reporters);
  return (
    map &&
    changed(map, 'pullmetrics', (pull) =>
      pull.kind === 'map' ? changed(pull, 'defaultHistogramBuckets', plainBounds) : pull,
    )
  );
}

function eachEntry(map: TreeNode, change: (node: TreeNode) => TreeNode | undefined): MapNode | undefined {
  if (map.kind !== 'map') return undefined;
  return entriesAt(map).reduce((all, [key]) => changed(all, key, change), map);
}

const inMap = (key: string, change: (node: TreeNode) => TreeNode | undefined) => (node: TreeNode) =>
  node.kind === 'map' ? changed(node, key, change) : node;

/** One of the service's files in the spec's words, whatever spelling it uses. */
export function inSpecWords(file: MapNode): MapNode {
  let map = respelled(file, top) ?? file;
  map = changed(map, 'clusterGroupMetadata', (node) => respelled(node, clusterGroup));
  map = changed(map, 'services', (services) => eachEntry(services, inMap('metrics', spelledMetrics)));
  return changed(map, 'archival', (archival) =>
    eachEntry(
      archival,
      inMap('provider', (provider) => respelled(provider, providers)),
    ),
  );
}
