import { schemes } from '../../../probes/archival/schemes.ts';
import type { PlacedFault } from '../loaded.ts';
import { faultAt } from '../placed.ts';
import { entriesAt, scalarAt, type TreeNode, type TreePath, textAt } from '../tree.ts';

/** What is wrong with archival in a configuration, the agent's or the service's (spec, Archival configuration). */
export function archivalFaults(tree: TreeNode): PlacedFault[] {
  return (['history', 'visibility'] as const).flatMap((section) => {
    const cluster = ['archival', section];
    const domains = ['domainDefaults', 'archival', section];
    return [...statusFaults(tree, cluster, domains), ...placeFaults(tree, cluster, domains)];
  });
}

/** Settings that contradict each other. */
function statusFaults(tree: TreeNode, cluster: TreePath, domains: TreePath): PlacedFault[] {
  const status = textAt(tree, ...cluster, 'status');
  const faults: PlacedFault[] = [];
  if (scalarAt(tree, ...cluster, 'enableRead') === true && status !== undefined && status !== 'enabled') {
    const message = `reads are on while archival is ${status}; enable it, or set enableRead to false`;
    faults.push(faultAt(tree, [...cluster, 'enableRead'], message));
  }
  if (status === 'disabled' && textAt(tree, ...domains, 'status') === 'enabled') {
    const message = 'domains archive while archival is disabled; enable it, or set this to disabled';
    faults.push(faultAt(tree, [...domains, 'status'], message));
  }
  return faults;
}

/** Where to archive, and by what. */
function placeFaults(tree: TreeNode, cluster: TreePath, domains: TreePath): PlacedFault[] {
  const isEnabled = textAt(tree, ...cluster, 'status') === 'enabled';
  const providers = entriesAt(tree, ...cluster, 'provider').map(([kind]) => kind);
  const uri = textAt(tree, ...domains, 'URI');
  const faults: PlacedFault[] = [];
  if (uri === undefined && (isEnabled || textAt(tree, ...domains, 'status') === 'enabled')) {
    faults.push(
      faultAt(tree, [...domains, 'URI'], 'missing while archival is enabled; say where to archive'),
    );
  }
  if (!isEnabled) return faults;
  const scheme = /^([a-z][a-z0-9+.-]*):/.exec(uri ?? '')?.[1] ?? '';
  const wanted = Object.hasOwn(schemes, scheme) ? schemes[scheme]!.providerKind : undefined;
  if (providers.length === 0) {
    faults.push(
      faultAt(tree, [...cluster, 'provider'], 'missing while archival is enabled; name a provider'),
    );
  } else if (wanted !== undefined && !providers.includes(wanted)) {
    const message = `no provider for the scheme ${scheme} of ${domains.join('.')}.URI; add ${wanted}`;
    faults.push(faultAt(tree, [...cluster, 'provider'], message));
  }
  return faults;
}
