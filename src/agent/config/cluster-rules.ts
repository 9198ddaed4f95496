import { schemes } from '../../probes/archival/archives.ts';
import { entriesAt, faultAt, nodeAt, scalarAt, type TreeNode, type TreePath, textAt } from './tree.ts';
import type { PlacedFault } from './types.ts';

const group: TreePath = ['clusterGroupMetadata'];

/** Faults in the clusters of a configuration, the agent's or the service's (spec, Versioning 1). */
export function clusterFaults(tree: TreeNode): PlacedFault[] {
  if (nodeAt(tree, ...group)?.kind !== 'map') return [];
  return [...versionFaults(tree), ...nameFaults(tree)];
}

/** Checks of numbers that the schema of `agent.yaml` covers already, for the service's files. */
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

/** Faults in the archival blocks of a configuration, the agent's or the service's (spec, Archival configuration). */
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

/** The archive's URI and its provider. */
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
