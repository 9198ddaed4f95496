import { asks, asksEachCluster } from '../../../probes/domains/command.ts';
import { faultAt } from '../placed.ts';
import { entriesAt, itemsAt, nodeAt, scalarAt, type TreePath, textAt } from '../tree.ts';
import type { Rule } from './rule.ts';

const path: TreePath = ['domains', 'describe', 'command'];
const group: TreePath = ['clusterGroupMetadata'];

/** A command that asks each cluster needs clusters, and their addresses where it has them as an argument. */
export const describedThroughClusters: Rule = ({ tree }) => {
  const command = itemsAt(tree, ...path).map((_, index) => String(scalarAt(tree, ...path, index)));
  if (!asksEachCluster(command)) return [];
  if (nodeAt(tree, ...group) === undefined) {
    return [faultAt(tree, path, 'asks each cluster, but no clusters are known; set clusterGroupMetadata')];
  }
  if (!asks(command).address) return [];
  return entriesAt(tree, ...group, 'clusterGroup').flatMap(([name]) => {
    const address = [...group, 'clusterGroup', name, 'rpcAddress'];
    const isAsked = scalarAt(tree, ...group, 'clusterGroup', name, 'enabled') !== false;
    if (!isAsked || textAt(tree, ...address) !== undefined) return [];
    return [faultAt(tree, address, 'missing, while domains.describe.command has {address}; set host:port')];
  });
};
