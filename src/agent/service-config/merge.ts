import { isNull, type MapNode } from '../config/tree.ts';

/** The later file over the earlier one, map by map; null removes, everything else replaces. */
export function mergeOver(under: MapNode, over: MapNode): MapNode {
  const entries = new Map(under.entries);
  for (const [key, entry] of over.entries) {
    const below = entries.get(key)?.node;
    if (isNull(entry.node)) entries.delete(key);
    else if (below?.kind === 'map' && entry.node.kind === 'map') {
      entries.set(key, { key: entry.key, node: mergeOver(below, entry.node) });
    } else entries.set(key, entry);
  }
  return { kind: 'map', place: over.place, entries };
}
