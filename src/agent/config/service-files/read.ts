import { resolve } from 'node:path';
import { roles } from '../../../core/catalog.ts';
import { readFileText } from '../environment.ts';
import {
  entriesAt,
  isNull,
  isWithin,
  type ListNode,
  type MapEntry,
  type MapNode,
  nodeAt,
  pathText,
  type TreeNode,
  type TreePath,
  textAt,
} from '../tree.ts';
import type { PlacedFault } from '../types.ts';
import { type Environment, readYaml } from '../yaml.ts';

export interface ServiceFiles {
  /** All files merged into one, in the spec's words; an empty map if there are none. */
  tree: MapNode;
  /** The files that a role reads, merged into one: all files except those that are named after other roles. */
  treeOf(role: string): MapNode;
  /** Faults of reading the files; an unreadable file is left out of the tree. */
  findings: PlacedFault[];
  /** The absolute paths of the files. */
  files: string[];
  /** The digest of each file; undefined if it is not known. */
  digests: Record<string, string | undefined>;
}

/** The sections of the service's configuration that concern something that the agent watches. */
const sections = [
  'log',
  'services',
  'persistence',
  'clusterGroupMetadata',
  'archival',
  'domainDefaults',
] as const;

/** Reads the service's own files in order; later files override earlier ones. Never throws. */
export function readServiceFiles(names: readonly string[], cwd: string, env: Environment): ServiceFiles {
  const empty: MapNode = {
    kind: 'map',
    place: { file: names.at(-1) ?? '', line: 1, column: 1 },
    entries: new Map(),
  };
  const read: { role: string | undefined; tree: MapNode }[] = [];
  const merged = (takes: (role: string | undefined) => boolean) =>
    read.filter(({ role }) => takes(role)).reduce((all, { tree }) => mergeOver(all, tree), empty);
  const result: ServiceFiles = {
    tree: empty,
    treeOf: (role) => merged((of) => of === undefined || of === role),
    findings: [],
    files: names.map((name) => resolve(cwd, name)),
    digests: {},
  };
  names.forEach((name, index) => {
    const content = readFileText(result.files[index]!, name);
    result.digests[result.files[index]!] = content.digest;
    if ('fault' in content) {
      result.findings.push(content.fault);
      return;
    }
    const { tree, faults } = readYaml(content.text, name, env);
    result.findings.push(...faults);
    if (tree) read.push({ role: roleOfFile(name), tree: inSpecWords(tree) });
  });
  result.tree = merged(() => true);
  if (
    names.length > 0 &&
    result.findings.length === 0 &&
    !sections.some((key) => result.tree.entries.has(key))
  ) {
    result.findings.push({
      where: names.at(-1)!,
      what: `no configuration of the service: none of ${sections.join(', ')} is in it`,
      allowed: 'name the file that the service starts with',
      path: '',
    });
  }
  return result;
}

/** The role to which a file belongs by its name, as real services name it: `production_history.yaml`. */
function roleOfFile(name: string): string | undefined {
  const [, last] = /_([^_/]+)\.ya?ml$/.exec(name) ?? [];
  return roles.find((role) => role === last);
}

/** Merges the later file over the earlier one, map by map: null removes a value, everything else replaces it. */
function mergeOver(under: MapNode, over: MapNode): MapNode {
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

/** Keys that real service files use, with the spec's words for them. */
const reporters = { m3: 'hostedmetrics', statsd: 'pushmetrics', prometheus: 'pullmetrics' } as const;
const top = { clusterMetadata: 'clusterGroupMetadata' } as const;
const clusterGroup = { masterClusterName: 'primaryClusterName', clusterInformation: 'clusterGroup' } as const;
const providers = { s3store: 'objectstore', gstorage: 'objectstore' } as const;

type Spellings = Readonly<Record<string, string>>;

/** The map with the spec's keys. If both spellings are there, the spec's is used. */
function respelled(node: TreeNode | undefined, spellings: Spellings): MapNode | undefined {
  if (node?.kind !== 'map') return undefined;
  const entries = new Map<string, MapEntry>();
  for (const [key, entry] of node.entries) {
    const word = Object.hasOwn(spellings, key) ? spellings[key]! : key;
    const own = node.entries.get(word);
    if (word === key || own === undefined || isNull(own.node)) entries.set(word, entry);
  }
  return { ...node, entries };
}

/** The map with one value changed by a function; unchanged if the key is missing or the function returns nothing. */
function changed(map: MapNode, key: string, change: (node: TreeNode) => TreeNode | undefined): MapNode {
  const entry = map.entries.get(key);
  const node = entry && change(entry.node);
  if (!entry || !node) return map;
  return { ...map, entries: new Map(map.entries).set(key, { ...entry, node }) };
}

/** Bounds as plain numbers, even if they are written as `{upper: 0.1}`. */
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

/** One of the service's files in the spec's words, whatever spelling the file uses. */
function inSpecWords(file: MapNode): MapNode {
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

/** Sources that may be written as one text, and the key for which the text stands. */
const shortForms: Readonly<Record<string, string>> = { scrape: 'url', statsd: 'listen' };

/** The map for which a text stands, if the service's files have a prefix to add; otherwise the node itself. */
function longForm(key: string, own: TreeNode, found: TreeNode): TreeNode {
  const isShort = own.kind === 'scalar' && typeof own.value === 'string' && Object.hasOwn(shortForms, key);
  if (!isShort || nodeAt(found, 'prefix') === undefined) return own;
  return {
    kind: 'map',
    place: own.place,
    entries: new Map([[shortForms[key]!, { key: own.place, node: own }]]),
  };
}

function over(own: TreeNode, found: TreeNode): TreeNode {
  if (own.kind !== 'map' || found.kind !== 'map') return own;
  const entries = new Map(own.entries);
  for (const [key, entry] of found.entries) {
    const below = entries.get(key);
    entries.set(
      key,
      below ? { key: below.key, node: over(longForm(key, below.node, entry.node), entry.node) } : entry,
    );
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
