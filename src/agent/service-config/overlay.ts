import {
  entriesAt,
  isNull,
  isWithin,
  type ListNode,
  type MapNode,
  pathText,
  type TreeNode,
  type TreePath,
  textAt,
} from '../config/tree.ts';
import type { PlacedFault } from '../config/types.ts';

/** Merges the agent's configuration over what was discovered. Values of the agent, null included, take precedence. */
export function overlay(agent: MapNode, found: MapNode): MapNode {
  const entries = new Map(agent.entries);
  for (const [key, entry] of found.entries) {
    const own = entries.get(key);
    if (key === 'stores')
      entries.set(key, { key: own?.key ?? entry.key, node: overlayStores(own?.node, entry.node) });
    else if (own === undefined) entries.set(key, entry);
    else entries.set(key, { key: own.key, node: over(own.node, entry.node) });
  }
  return { ...agent, entries };
}

function over(own: TreeNode, found: TreeNode): TreeNode {
  if (own.kind !== 'map' || found.kind !== 'map') return own;
  const entries = new Map(own.entries);
  for (const [key, entry] of found.entries) {
    const below = entries.get(key);
    entries.set(key, below ? { key: below.key, node: over(below.node, entry.node) } : entry);
  }
  return { ...own, entries };
}

/** Merges stores by name: the agent's configuration has a list, the discovered tree a map. */
function overlayStores(own: TreeNode | undefined, found: TreeNode): TreeNode {
  if (found.kind !== 'map' || (own !== undefined && own.kind !== 'list' && !isNull(own))) return own ?? found;
  if (own && isNull(own)) return own;
  const rest = new Map(found.entries);
  const items = (own?.kind === 'list' ? own.items : []).map((item) => {
    const name = textAt(item, 'name');
    const same = name === undefined ? undefined : rest.get(name)?.node;
    if (name !== undefined) rest.delete(name);
    return same ? over(item, same) : item;
  });
  const list: ListNode = { kind: 'list', place: own?.place ?? found.place, items };
  return { ...list, items: [...items, ...[...rest.values()].map(({ node }) => node)] };
}

/** The discovered tree without invalid parts: a source of a service, or a whole block. */
export function without(found: MapNode, faults: readonly PlacedFault[]): MapNode {
  const faulty = (unit: TreePath) => faults.some(({ path }) => isWithin(path, pathText(unit)));
  const entries = new Map(found.entries);
  for (const key of found.entries.keys()) if (key !== 'services' && faulty([key])) entries.delete(key);
  const services = entries.get('services');
  if (services?.node.kind !== 'map') return { ...found, entries };
  const kept = new Map(services.node.entries);
  for (const [name, { key, node }] of entriesAt(services.node)) {
    if (node.kind !== 'map') continue;
    const sources = [...node.entries].filter(([source]) => !faulty(['services', name, source]));
    kept.set(name, { key, node: { ...node, entries: new Map(sources) } });
  }
  entries.set('services', { key: services.key, node: { ...services.node, entries: kept } });
  return { ...found, entries };
}
