import type { Discovered, Place } from '../config/loaded.ts';
import { isSecret } from '../config/placed.ts';
import { type Entry, type MapNode, pathText, type Scalar, type TreeNode } from '../config/tree.ts';

/** Builds, value by value, the part of an agent's configuration that the service's files give. */
export interface Graft {
  /** A value at a path of the agent's configuration, and where the service's files have it. */
  put(path: readonly string[], value: Scalar | readonly string[], place: Place): void;
  readonly tree: MapNode;
  /** What of it is still in a tree that was made from this one. */
  discoveredIn(tree: TreeNode): Discovered[];
}

const newMap = (place: Place): MapNode => ({ kind: 'map', place, entries: new Map() });

/** Every single value and every list of them. */
function* leavesOf(node: TreeNode): Generator<TreeNode> {
  if (node.kind !== 'map') yield node;
  if (node.kind === 'list') for (const item of node.items) yield* leavesOf(item);
  if (node.kind === 'map') for (const { node: value } of node.entries.values()) yield* leavesOf(value);
}

export function createGraft(top: Place): Graft {
  const tree = newMap(top);
  const discovered = new Map<TreeNode, Discovered>();

  const set = (path: readonly string[], entry: Entry) => {
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
    put(path, value, place) {
      const scalar = (of: Scalar): TreeNode => ({ kind: 'scalar', place, value: of });
      const node: TreeNode = Array.isArray(value)
        ? { kind: 'list', place, items: value.map(scalar) }
        : scalar(value as Scalar);
      set(path, { key: place, node });
      const shown = isSecret(path) ? '(secret)' : Array.isArray(value) ? value.join(', ') : String(value);
      discovered.set(node, { path: pathText(path), value: shown, place });
    },
    discoveredIn(other) {
      const left = new Set(leavesOf(other));
      return [...discovered].filter(([node]) => left.has(node)).map(([, found]) => found);
    },
  };
}
