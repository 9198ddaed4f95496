import type { PlacedFault } from '../loaded.ts';
import { faultAt } from '../placed.ts';
import { entriesAt, nodeAt, scalarAt, type TreeNode, type TreePath, textAt } from '../tree.ts';

const group: TreePath = ['clusterGroupMetadata'];

/** What is wrong with the clusters of a configuration, the agent's or the service's (spec, Versioning 1). */
export function clusterFaults(tree: TreeNode): PlacedFault[] {
  if (nodeAt(tree, ...group)?.kind !== 'map') return [];
  return [...versionFaults(tree), ...nameFaults(tree)];
}

/** Numbers that the block of `agent.yaml` refuses by itself, for files that it does not check. */
export function clusterNumberFaults(tree: TreeNode): PlacedFault[] {
  const atLeast = (path: TreePath, least: number): PlacedFault[] => {
    const value = scalarAt(tree, ...path);
    if (typeof value !== 'number' || value >= least) return [];
    return [faultAt(tree, path, `too small; use ${least} or more`)];
  };
  return [
    ...atLeast([...group, 'failoverVersionIncrement'], 1),
    ...entriesAt(tree, ...group, 'clusterGroup').flatMap(([name]) =>
      atLeast([...group, 'clusterGroup', name, 'initialFailoverVersion'], 0),
    ),
  ];
}

function versionFaults(tree: TreeNode): PlacedFault[] {
  const increment = scalarAt(tree, ...group, 'failoverVersionIncrement');
  const seen = new Map<number, string>();
  return entriesAt(tree, ...group, 'clusterGroup').flatMap(([name]) => {
    const path = [...group, 'clusterGroup', name, 'initialFailoverVersion'];
    const version = scalarAt(tree, ...path);
    if (typeof version !== 'number') return [];
    const other = seen.get(version);
    seen.set(version, other ?? name);
    if (other !== undefined) {
      return [
        faultAt(tree, path, `the version of ${other} too; give each cluster its own, disabled ones included`),
      ];
    }
    if (typeof increment !== 'number' || increment < 1 || version < increment) return [];
    return [
      faultAt(
        tree,
        path,
        `not below failoverVersionIncrement, which is ${increment}; use 0 to ${increment - 1}`,
      ),
    ];
  });
}

function nameFaults(tree: TreeNode): PlacedFault[] {
  const names = entriesAt(tree, ...group, 'clusterGroup').map(([name]) => name);
  if (names.length === 0) return [];
  return (['primaryClusterName', 'currentClusterName'] as const).flatMap((key) => {
    const path = [...group, key];
    const name = textAt(tree, ...path);
    if (name === undefined) return [];
    if (!names.includes(name)) return [faultAt(tree, path, `not in clusterGroup; use ${names.join(' or ')}`)];
    if (scalarAt(tree, ...group, 'clusterGroup', name, 'enabled') !== false) return [];
    return [faultAt(tree, path, 'not enabled in clusterGroup; enable it, or name another')];
  });
}
