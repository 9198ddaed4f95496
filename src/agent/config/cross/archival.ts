import type { PlacedFault } from '../loaded.ts';
import { faultAt } from '../placed.ts';
import { entriesAt, scalarAt, type TreeNode, textAt } from '../tree.ts';

/** What is wrong with archival in a configuration, the agent's or the service's (spec, Archival configuration). */
export function archivalFaults(tree: TreeNode): PlacedFault[] {
  return (['history', 'visibility'] as const).flatMap((section) => {
    const status = textAt(tree, 'archival', section, 'status');
    const path = ['archival', section];
    const faults: PlacedFault[] = [];
    if (scalarAt(tree, ...path, 'enableRead') === true && status !== undefined && status !== 'enabled') {
      faults.push(
        faultAt(
          tree,
          [...path, 'enableRead'],
          `reads are on while archival is ${status}; enable it, or set enableRead to false`,
        ),
      );
    }
    if (status === 'enabled' && entriesAt(tree, ...path, 'provider').length === 0) {
      faults.push(faultAt(tree, [...path, 'provider'], 'missing while archival is enabled; name a provider'));
    }
    const domains = ['domainDefaults', 'archival', section];
    if (textAt(tree, ...domains, 'status') === 'enabled' && textAt(tree, ...domains, 'URI') === undefined) {
      faults.push(
        faultAt(tree, [...domains, 'URI'], 'missing while archival is enabled; say where to archive'),
      );
    }
    return faults;
  });
}
