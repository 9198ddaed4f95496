import type { PlacedFault } from '../config/loaded.ts';
import { entriesAt, isWithin, type MapNode, pathText, type TreePath } from '../config/tree.ts';

/** What was found without the parts that are at fault: one source of one service, or one block as a whole. */
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
