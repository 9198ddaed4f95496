import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { certificateFault, expiredSince } from '../../reporters/listen/certificates.ts';
import type { LoadRequest, PlacedFault } from './loaded.ts';
import { faultAt } from './placed.ts';
import { snake } from './spelling.ts';
import { entriesAt, type MapNode, type TreePath, textAt } from './tree.ts';

/** Where listeners of ours may have `tls`. */
function tlsPaths(tree: MapNode): TreePath[] {
  const services = entriesAt(tree, 'services').map(([name]) => name);
  return [
    ['metrics', 'pullmetrics', 'tls'],
    ...services.map((name) => ['services', name, 'metrics', 'pullmetrics', 'tls']),
    ...services.map((name) => ['services', name, 'statsd', 'tls']),
    ['admin', 'tls'],
  ];
}

/** The bytes of a file; undefined where there is none, which is a finding of its own. */
function bytesOf(file: string | undefined, cwd: string): Buffer | undefined {
  try {
    return file === undefined ? undefined : readFileSync(resolve(cwd, file));
  } catch {
    return undefined;
  }
}

function unfitAt(tree: MapNode, path: TreePath, cwd: string, nowMs: number): PlacedFault[] {
  const pathOf = (key: string): TreePath =>
    textAt(tree, ...path, key) === undefined ? [...path, snake(key)] : [...path, key];
  const bytes = (key: string) => bytesOf(textAt(tree, ...pathOf(key)), cwd);
  const [certFile, keyFile, clientCaFile] = [bytes('certFile'), bytes('keyFile'), bytes('clientCaFile')];
  if (!certFile || !keyFile) return [];
  const fault = certificateFault({ certFile, keyFile, clientCaFile });
  if (fault) return [faultAt(tree, pathOf(fault.key), `${fault.what}; ${fault.allowed}`)];
  const endMs = expiredSince(certFile, nowMs);
  if (endMs === undefined) return [];
  return [faultAt(tree, pathOf('certFile'), `expired on ${new Date(endMs).toISOString()}; renew it`)];
}

/** Certificates of our listeners that are there and cannot serve: no PEM, another key's, expired. */
export function certificatesUnfit(tree: MapNode, { cwd }: Pick<LoadRequest, 'cwd'>): PlacedFault[] {
  return tlsPaths(tree).flatMap((path) => unfitAt(tree, path, cwd, Date.now()));
}
