import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Scalar,
  visit,
  type YAMLMap,
} from 'yaml';
import { type Environment, expand, resolvePlain } from './expand.ts';
import type { Place, PlacedFault } from './loaded.ts';
import { placedFault } from './placed.ts';
import { type MapNode, nodeWord, type TreeNode, type TreePath } from './tree.ts';

/** Bounds that no configuration comes near; past them a document is an attack or a mistake. */
export const maxDepth = 64;
const maxNodes = 200_000;

/** One way through a document. */
interface Walk {
  at: (offset: number) => Place;
  env: Environment;
  faults: PlacedFault[];
  /** What each alias means. */
  meanings: ReadonlyMap<Alias, unknown>;
  /** Values seen so far, those behind aliases each time. */
  nodes: number;
}

/** The document's top map as a tree: aliases and merge keys followed, variables put in; faults are added. */
export function walkDocument(
  document: Document.Parsed,
  at: (offset: number) => Place,
  env: Environment,
  faults: PlacedFault[],
): MapNode | undefined {
  const walk: Walk = { at, env, faults, meanings: meaningsOf(document), nodes: 0 };
  const top = at(0);
  const root = walkNode(walk, document.contents, [], startOf(walk, document.contents, top));
  if (!root || root.kind === 'map') return root;
  if (root.kind === 'scalar' && root.value === null) return { kind: 'map', place: top, entries: new Map() };
  return refuse(walk, root.place, [], `${nodeWord(root)}, not a map; use keys and values`);
}

/** An alias means the nearest anchor of its name above it; one pass finds all of them. */
function meaningsOf(document: Document.Parsed): ReadonlyMap<Alias, unknown> {
  const anchors = new Map<string, unknown>();
  const meanings = new Map<Alias, unknown>();
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) meanings.set(node, anchors.get(node.source));
      else if (node.anchor) anchors.set(node.anchor, node);
    },
  });
  return meanings;
}

function refuse(walk: Walk, place: Place, path: TreePath, message: string, got?: unknown): undefined {
  walk.faults.push(placedFault(place, path, message, got));
  return undefined;
}

function startOf({ at }: Walk, node: unknown, otherwise: Place): Place {
  const range = (node as { range?: readonly number[] | null } | null | undefined)?.range;
  return range ? at(range[0]!) : otherwise;
}

function walkNode(walk: Walk, given: unknown, path: TreePath, place: Place): TreeNode | undefined {
  if (path.length > maxDepth)
    return refuse(walk, place, [], `nested too deeply; use at most ${maxDepth} levels`);
  if (++walk.nodes > maxNodes) {
    if (walk.nodes === maxNodes + 1) refuse(walk, place, [], `too many values; use at most ${maxNodes}`);
    return undefined;
  }
  const node = isAlias(given) ? walk.meanings.get(given) : given;
  if (isAlias(given) && !node) return refuse(walk, place, path, 'no such anchor above', given.source);
  if (isMap(node)) return walkMap(walk, node, path, place);
  if (isScalar(node)) return walkScalar(walk, node, path, place);
  if (!isSeq(node)) return { kind: 'scalar', place, value: null };
  const items = node.items.map((item, index) =>
    walkNode(walk, item, [...path, index], startOf(walk, item, place)),
  );
  return { kind: 'list', place, items: items.filter((item) => item !== undefined) };
}

function walkScalar(
  walk: Walk,
  { value, source, type }: Scalar,
  path: TreePath,
  place: Place,
): TreeNode | undefined {
  if (typeof value === 'string' && value.includes('${')) {
    const expanded = expand(value, walk.env);
    if ('fault' in expanded) return refuse(walk, place, path, expanded.fault, value);
    const meant = type === Scalar.PLAIN ? resolvePlain(expanded.text) : expanded.text;
    return { kind: 'scalar', place, value: meant, written: value };
  }
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) {
    return { kind: 'scalar', place, value: value as string | number | boolean | null };
  }
  return refuse(walk, place, path, 'not a value that a configuration can have', source);
}

function walkMap(walk: Walk, map: YAMLMap, path: TreePath, place: Place): MapNode {
  const result: MapNode = { kind: 'map', place, entries: new Map() };
  const merged: MapNode[] = [];
  for (const pair of map.items) {
    const key = isAlias(pair.key) ? walk.meanings.get(pair.key) : pair.key;
    const keyPlace = startOf(walk, pair.key, place);
    if (isScalar(key) && key.value === '<<' && key.type === Scalar.PLAIN) {
      merged.push(...mergedMaps(walk, pair.value, path, keyPlace));
      continue;
    }
    const name = keyName(walk, key, path, keyPlace);
    if (name === undefined) continue;
    const node = walkNode(walk, pair.value, [...path, name], startOf(walk, pair.value, keyPlace));
    if (node) result.entries.set(name, { key: keyPlace, node });
  }
  for (const other of merged) {
    for (const [name, entry] of other.entries) if (!result.entries.has(name)) result.entries.set(name, entry);
  }
  return result;
}

/** A key as written: `1` and `true` are words too. */
function keyName(walk: Walk, key: unknown, path: TreePath, place: Place): string | undefined {
  if (!isScalar(key)) return refuse(walk, place, path, 'a key that is no text; use a word');
  const name = key.value === null ? '' : String(key.source ?? key.value);
  if (name !== '__proto__' && name !== '') return name;
  return refuse(walk, place, path, 'not usable as a key', name);
}

function mergedMaps(walk: Walk, value: unknown, path: TreePath, place: Place): MapNode[] {
  const node = walkNode(walk, value, [...path, '<<'], place);
  const maps = node?.kind === 'list' ? node.items : node ? [node] : [];
  return maps.filter((map): map is MapNode => {
    if (map.kind === 'map') return true;
    refuse(walk, place, path, `${nodeWord(map)} cannot be merged; use a map or a list of maps after <<`);
    return false;
  });
}
