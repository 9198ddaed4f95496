import type { Place } from '../loaded.ts';
import { placedFault } from '../placed.ts';
import { entriesAt, nodeAt, placeOf, type TreeNode, type TreePath } from '../tree.ts';
import type { Rule } from './rule.ts';

export const reporterKeys = ['pullmetrics', 'pushmetrics', 'hostedmetrics'] as const;

/** Paths of every `metrics` block. */
export function metricsPaths(tree: TreeNode): TreePath[] {
  const ofServices = entriesAt(tree, 'services').map(([name]) => ['services', name, 'metrics']);
  return [['metrics'], ...ofServices].filter((path) => nodeAt(tree, ...path)?.kind === 'map');
}

/** Reporters of a block that has too many, and where the last of them stands. */
export function tooManyReporters(
  tree: TreeNode,
  path: TreePath,
): { names: string; place: Place } | undefined {
  const found = reporterKeys.filter((key) => nodeAt(tree, ...path, key) !== undefined);
  if (found.length < 2) return undefined;
  const places = found.map((key) => placeOf(tree, [...path, key]));
  const last = places.reduce((one, other) => (isBefore(one, other) ? other : one));
  return { names: found.join(' and '), place: last };
}

const isBefore = (one: Place, other: Place): boolean =>
  one.line === other.line ? one.column < other.column : one.line < other.line;

/** At most one reporter in a block (spec, Errors 1). */
export const oneReporter: Rule = ({ tree }) =>
  metricsPaths(tree).flatMap((path) => {
    const clash = tooManyReporters(tree, path);
    if (!clash) return [];
    return [
      placedFault(clash.place, path, `more than one reporter, ${clash.names}; keep one, set the others to ~`),
    ];
  });
