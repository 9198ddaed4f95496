import { isNull, type ListNode, type MapNode, type TreeNode, textAt } from '../config/tree.ts';

/** The agent's configuration over what was discovered: what it says, null included, always wins. */
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

/** Stores meet by name: in the agent's configuration they are a list, as found they are a map. */
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
