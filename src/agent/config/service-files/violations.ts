import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemCode } from '../../../core/errors.ts';
import { logLevels } from '../../../core/reasons.ts';
import { ascending, interval, listenAddress, statsdAddress } from '../../../core/text-formats.ts';
import {
  archivalFaults,
  clusterFaults,
  clusterNumberFaults,
  reporterKeys,
  tooManyReporters,
} from '../shared-rules.ts';
import {
  entriesAt,
  faultAt,
  nodeAt,
  placedFault,
  plainValue,
  scalarAt,
  type TreeNode,
  type TreePath,
  textAt,
} from '../tree.ts';
import type { PlacedFault } from '../types.ts';
import type { ServiceFiles } from './read.ts';

/** Violations of the spec in the service's own files. `local` says that its log files are on this host. */
export function violationsOf(
  { tree, treeOf }: Pick<ServiceFiles, 'tree' | 'treeOf'>,
  { local, cwd, roles }: { local: boolean; cwd: string; roles: readonly string[] },
): PlacedFault[] {
  const services = entriesAt(tree, 'services').map(([name]) => name);
  return [
    ...[tree, ...roles.map(treeOf)].flatMap((of) => logFindings(of, local, cwd)),
    ...services.flatMap((name) => metricsFindings(tree, ['services', name, 'metrics'])),
    ...sharedListeners(tree, services),
    ...clusterFaults(tree),
    ...clusterNumberFaults(tree),
    ...archivalFaults(tree),
  ];
}

function logFindings(tree: TreeNode, local: boolean, cwd: string): PlacedFault[] {
  const findings: PlacedFault[] = [];
  const report = (key: string, message: string) => findings.push(faultAt(tree, ['log', key], message));
  const level = scalarAt(tree, 'log', 'level');
  if (level !== undefined && !(logLevels as readonly unknown[]).includes(level)) {
    report('level', 'unknown level; use debug, info, warn, error or fatal (lower case)');
  }
  const encoding = scalarAt(tree, 'log', 'encoding');
  if (encoding !== undefined && encoding !== 'json' && encoding !== 'console') {
    report('encoding', 'unknown encoding; use json or console');
  }
  const file = textAt(tree, 'log', 'outputFile');
  const trouble = local && file !== undefined ? directoryTrouble(file, cwd) : undefined;
  if (trouble) report('outputFile', `${trouble}; the directory must exist and be writable`);
  return findings;
}

function metricsFindings(tree: TreeNode, path: TreePath): PlacedFault[] {
  const found = reporterKeys.filter((key) => nodeAt(tree, ...path, key) !== undefined);
  const findings: PlacedFault[] = [];
  const clash = tooManyReporters(tree, path);
  if (clash) {
    const message = `more than one reporter, ${clash.names}, with which the service refuses to start; keep one`;
    findings.push(placedFault(clash.place, path, message));
  }
  findings.push(...durationFinding(tree, [...path, 'reportingInterval']));
  if (found.includes('pullmetrics')) findings.push(...pullFindings(tree, [...path, 'pullmetrics']));
  if (found.includes('pushmetrics')) findings.push(...pushFindings(tree, [...path, 'pushmetrics']));
  return findings;
}

function durationFinding(tree: TreeNode, path: TreePath): PlacedFault[] {
  const value = scalarAt(tree, ...path);
  if (value === undefined || (typeof value === 'string' && interval.read(value) !== undefined)) return [];
  return [faultAt(tree, path, interval.fault)];
}

function pullFindings(tree: TreeNode, path: TreePath): PlacedFault[] {
  const findings: PlacedFault[] = [];
  const report = (key: string, message: string) => findings.push(faultAt(tree, [...path, key], message));
  const address = scalarAt(tree, ...path, 'listenAddress');
  if (address === undefined) report('listenAddress', 'missing; without it the service cannot be scraped');
  else if (typeof address !== 'string' || !readGoAddress(address))
    report('listenAddress', listenAddress.fault);
  const timerType = scalarAt(tree, ...path, 'timerType');
  if (timerType !== undefined && timerType !== 'histogram') {
    report('timerType', 'not histogram, so latency alerts see nothing; use histogram');
  }
  const buckets = nodeAt(tree, ...path, 'defaultHistogramBuckets');
  const bounds = buckets && plainValue(buckets);
  if (bounds !== undefined) {
    if (!Array.isArray(bounds) || bounds.some((bound) => typeof bound !== 'number')) {
      report('defaultHistogramBuckets', 'not a list of numbers; use seconds');
    } else {
      const at = ascending.brokenAt(bounds);
      if (at >= 0) findings.push(faultAt(tree, [...path, 'defaultHistogramBuckets', at], ascending.fault));
    }
  }
  return findings;
}

function pushFindings(tree: TreeNode, path: TreePath): PlacedFault[] {
  const findings: PlacedFault[] = [];
  const report = (key: string, message: string) => findings.push(faultAt(tree, [...path, key], message));
  const address = scalarAt(tree, ...path, 'hostPort');
  if (address === undefined) report('hostPort', 'missing; the service sends nothing without it');
  else if (typeof address !== 'string' || !statsdAddress.read(address))
    report('hostPort', statsdAddress.fault);
  findings.push(...durationFinding(tree, [...path, 'flushInterval']));
  const bytes = scalarAt(tree, ...path, 'flushBytes');
  if (bytes !== undefined && !(Number.isInteger(bytes) && Number(bytes) >= 0)) {
    report('flushBytes', 'not a whole number of bytes; use the size of one datagram');
  }
  return findings;
}

/** A listen address as the service reads it: an empty host means every address of the machine. */
export function readGoAddress(text: string): string | undefined {
  return listenAddress.read(text.startsWith(':') ? `0.0.0.0${text}` : text);
}

/** Findings for two roles of one process with one address: the second cannot bind it and only logs a warning. */
function sharedListeners(tree: TreeNode, services: readonly string[]): PlacedFault[] {
  const seen = new Map<string, string>();
  return services.flatMap((name) => {
    const path = ['services', name, 'metrics', 'pullmetrics', 'listenAddress'];
    const address = textAt(tree, ...path);
    if (address === undefined || address.endsWith(':0')) return [];
    const other = seen.get(address);
    seen.set(address, other ?? name);
    return other === undefined
      ? []
      : [faultAt(tree, path, `already the address of ${other}; on one host use one port for each role`)];
  });
}

const anybodyMayWrite = 0o222;

/**
 * The reason why the service cannot write its log file here, or undefined. The agent does not know the service's user;
 * it finds only what no user can write.
 */
function directoryTrouble(outputFile: string, cwd: string): string | undefined {
  const directory = dirname(resolve(cwd, outputFile));
  try {
    const { mode } = statSync(`${directory}/`);
    if ((mode & anybodyMayWrite) === 0) return 'its directory is read-only';
    accessSync(directory, constants.W_OK);
    return undefined;
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return 'its directory is missing';
    if (code === 'ENOTDIR') return 'its directory is a file';
    return code === 'EROFS' ? 'its directory is read-only' : undefined;
  }
}
