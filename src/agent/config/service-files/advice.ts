import { schemes } from '../../../probes/archival/archives.ts';
import { archiveSections, isArchiveUsable, uriFaults } from '../shared-rules.ts';
import {
  entriesAt,
  faultAt,
  itemsAt,
  nodeAt,
  placedFault,
  placeOf,
  scalarAt,
  type TreeNode,
  type TreePath,
  textAt,
} from '../tree.ts';
import type { PlacedFault } from '../types.ts';
import { hasGroupFaults, unwatchedStore } from './discover.ts';

/**
 * Advice about settings that the spec allows in the service's own files: settings that real releases read differently, settings
 * that are not for production, and what the agent does not watch. None of it is a fault.
 */
export function adviceOn({ service, agent, roles }: AdviceInput): PlacedFault[] {
  const ofBoth = [service, agent].flatMap((tree) => [...transportAdvice(tree), ...schemeAdvice(tree)]);
  return [
    ...logAdvice(service),
    ...roles.flatMap((role) => timerAdvice(service, role)),
    ...roles.flatMap((role) => (isReceived(agent, role) ? [] : hostedAdvice(service, role))),
    ...storeAdvice(service, agent),
    ...ofBoth,
  ];
}

interface AdviceInput {
  /** The service's own files. */
  service: TreeNode;
  /** The agent's configuration, including the settings from the service's files. */
  agent: TreeNode;
  /** The services that are watched. */
  roles: readonly string[];
}

/** Whether the agent receives metrics of a role. */
const isReceived = (agent: TreeNode, role: string): boolean =>
  ['scrape', 'statsd'].some((source) => nodeAt(agent, 'services', role, source) !== undefined);

function logAdvice(tree: TreeNode): PlacedFault[] {
  const advise = (key: string, message: string) => [faultAt(tree, ['log', key], message)];
  const hasFile = textAt(tree, 'log', 'outputFile') !== undefined;
  const isStdout = scalarAt(tree, 'log', 'stdout') === true;
  return [
    ...(textAt(tree, 'log', 'level') === 'debug'
      ? advise('level', 'for troubleshooting; use info in production')
      : []),
    ...(textAt(tree, 'log', 'encoding') === 'console'
      ? advise('encoding', 'for development; use json in production')
      : []),
    ...(isStdout && !hasFile
      ? advise(
          'stdout',
          'some releases write to standard error unless outputFile is set; if logs are missing, read standard error',
        )
      : []),
    ...(isStdout && hasFile
      ? advise(
          'stdout',
          'some releases write to standard output alone and leave outputFile empty; if it stays empty, read standard output',
        )
      : []),
  ];
}

function hostedAdvice(tree: TreeNode, role: string): PlacedFault[] {
  const path = ['services', role, 'metrics', 'hostedmetrics'];
  if (nodeAt(tree, ...path) === undefined) return [];
  const message =
    'the role reports to a hosted platform, so the agent has no metrics of it; log and health are watched where they are set';
  return [placedFault(placeOf(tree, path), path, message)];
}

function timerAdvice(tree: TreeNode, role: string): PlacedFault[] {
  const path = ['services', role, 'metrics', 'pullmetrics'];
  if (nodeAt(tree, ...path) === undefined || nodeAt(tree, ...path, 'timerType') !== undefined) return [];
  const message =
    'not set, which some releases read as summary, not as the default, histogram; set histogram, so that latency alerts work with each release';
  return [placedFault(placeOf(tree, path), [...path, 'timerType'], message)];
}

/** Advice about datastores that the service uses and the agent does not watch. */
function storeAdvice(tree: TreeNode, agent: TreeNode): PlacedFault[] {
  const own = new Set(itemsAt(agent, 'stores').map((item) => textAt(item, 'name')));
  const used = ['defaultStore', 'visibilityStore', 'advancedVisibilityStore'].flatMap(
    (key) => textAt(tree, 'persistence', key) ?? [],
  );
  return [...new Set(used)].flatMap((name) => {
    const path: TreePath = ['persistence', 'datastores', name];
    const message = nodeAt(tree, ...path) && !own.has(name) ? unwatchedStore(tree, name) : undefined;
    return message ? [placedFault(placeOf(tree, path), path, message)] : [];
  });
}

const group: TreePath = ['clusterGroupMetadata', 'clusterGroup'];

/** Advice about peers that the agent reaches without speaking their protocol. */
function transportAdvice(tree: TreeNode): PlacedFault[] {
  return entriesAt(tree, ...group).flatMap(([name]) => {
    const path = [...group, name, 'rpcTransport'];
    const transport = scalarAt(tree, ...path);
    if (transport === undefined || transport === 'grpc') return [];
    const message =
      'the agent checks only that the address accepts connections, not that the frontend is healthy; use grpc for a health check';
    return [faultAt(tree, path, message)];
  });
}

/** Advice about archives in places that the agent cannot look into. */
function schemeAdvice(tree: TreeNode): PlacedFault[] {
  return ['history', 'visibility'].flatMap((section) => {
    const path = ['domainDefaults', 'archival', section, 'URI'];
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//.exec(textAt(tree, ...path) ?? '')?.[1];
    if (scheme === undefined || Object.hasOwn(schemes, scheme)) return [];
    const known = Object.keys(schemes).join(', ');
    const message = `the agent only shows this setting and does not check the archive; it can check the schemes ${known}`;
    return [faultAt(tree, path, message)];
  });
}

/**
 * Findings that say what the agent does not watch because the section in the service's files has faults. `agent` is the
 * configuration with what was taken from these files.
 */
export function unwatchedSections(service: TreeNode, agent: TreeNode): PlacedFault[] {
  const unwatched = (path: readonly string[], what: string): PlacedFault[] => {
    if (nodeAt(service, ...path) === undefined || nodeAt(agent, ...path) !== undefined) return [];
    const message = `has faults, so the agent does not watch ${what}; correct them, or set ${path.join('.')} in the agent’s configuration`;
    return [placedFault(placeOf(service, path), path, message)];
  };
  return [
    ...(hasGroupFaults(service) ? unwatched(['clusterGroupMetadata'], 'the other clusters') : []),
    ...archiveSections.flatMap((section) => {
      const path = ['archival', section];
      const isOn = textAt(service, ...path, 'status') === 'enabled';
      if (!isOn || isArchiveUsable(service, section)) return [];
      return [...uriFaults(service, section), ...unwatched(path, `the ${section} archive`)];
    }),
  ];
}
