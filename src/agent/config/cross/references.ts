import { nearest } from '../../../core/suggest.ts';
import type { BackupType } from '../../../probes/backups/options.ts';
import type { PlacedFault } from '../loaded.ts';
import { faultAt } from '../placed.ts';
import { itemsAt, scalarAt, type TreePath, textAt } from '../tree.ts';
import type { Rule } from './rule.ts';

/** Names in a list that must differ. */
function twice(tree: Parameters<Rule>[0]['tree'], list: string): PlacedFault[] {
  const seen = new Map<string, number>();
  return itemsAt(tree, list).flatMap((_, index) => {
    const path: TreePath = [list, index, 'name'];
    const name = textAt(tree, ...path);
    if (name === undefined) return [];
    const first = seen.get(name);
    if (first === undefined) seen.set(name, index);
    return first === undefined
      ? []
      : [faultAt(tree, path, `the name of ${list}[${first}] too; use each name once`)];
  });
}

export const distinctNames: Rule = ({ tree }) => [...twice(tree, 'stores'), ...twice(tree, 'backups')];

/** Types of backups that are of a store; `config` is of files. */
const storeTypes: ReadonlySet<string> = new Set<BackupType>(['full', 'incremental', 'log']);

/** Backups of a store that is not there; `config` backups need none. */
export const backupsOfStores: Rule = ({ tree }) => {
  const stores = itemsAt(tree, 'stores').flatMap((_, index) => textAt(tree, 'stores', index, 'name') ?? []);
  return itemsAt(tree, 'backups').flatMap((_, index) => {
    const path: TreePath = ['backups', index, 'store'];
    const store = scalarAt(tree, ...path);
    if (store === undefined) {
      const type = textAt(tree, 'backups', index, 'type');
      return type === undefined || !storeTypes.has(type)
        ? []
        : [faultAt(tree, path, 'missing; name an entry of stores')];
    }
    if (typeof store !== 'string' || stores.includes(store)) return [];
    const near = nearest(store, stores);
    const known = stores.length === 0 ? 'there are none' : `known are ${stores.join(', ')}`;
    return [faultAt(tree, path, `no such store; ${near ? `did you mean ${near}?` : known}`)];
  });
};

/** No metric may have more series than all may have together. */
export const limitsFit: Rule = ({ tree }) => {
  const [each, all] = [
    scalarAt(tree, 'limits', 'seriesPerMetric'),
    scalarAt(tree, 'limits', 'series') ?? 50_000,
  ];
  if (typeof each !== 'number' || typeof all !== 'number' || each <= all) return [];
  return [
    faultAt(
      tree,
      ['limits', 'seriesPerMetric'],
      `more than limits.series, which is ${all}; use at most that`,
    ),
  ];
};
