import files from 'node:fs';
import { resolve } from 'node:path';
import { secretPlaceText } from '../../core/access.ts';
import { hasCertificate } from '../../core/client-tls.ts';
import { regularFileReaderSync } from '../../core/regular-file.ts';
import { certificateFilesFault, expiredSince } from '../../reporters/listen/certificates.ts';
import { snake } from './access-blocks.ts';
import { unreadableFile } from './environment.ts';
import {
  faultAt,
  isNull,
  isSecret,
  type MapNode,
  placedFault,
  placeOf,
  type ScalarNode,
  type TreeNode,
  type TreePath,
  textAt,
} from './tree.ts';
import type { LoadRequest, PlacedFault } from './types.ts';

const fileKeys: ReadonlySet<string> = new Set([
  ...['caFile', 'certFile', 'keyFile', 'clientCaFile'],
  ...['cert_file', 'key_file', 'client_ca_file'],
]);
/** Keys of password hashes, which may be in the file. */
const hashKeys: ReadonlySet<string> = new Set(['basicAuthUsers', 'basic_auth_users']);
/** Headers that say to whom the data belongs. Every other header of a report may be a secret. */
const openHeaders = /^x-(?:.+-)?(?:dataset|tenant|tenant-id|orgid|org-id)$/i;

/** Every single value below a node. */
export function* scalarsOf(
  node: TreeNode,
  path: TreePath = [],
): Generator<{ node: ScalarNode; path: TreePath }> {
  if (node.kind === 'scalar') yield { node, path };
  else if (node.kind === 'list')
    for (const [index, item] of node.items.entries()) yield* scalarsOf(item, [...path, index]);
  else for (const [key, { node: value }] of node.entries) yield* scalarsOf(value, [...path, key]);
}

/** Secrets and key files that the configuration names and that are missing now. */
export function secretsUnmet(tree: TreeNode, { env, cwd }: Pick<LoadRequest, 'env' | 'cwd'>): PlacedFault[] {
  return [...scalarsOf(tree)].flatMap(({ node, path }) => {
    const key = path.at(-1);
    if (typeof node.value !== 'string' || typeof key !== 'string') return [];
    const named = isSecret(path.slice(0, -1));
    if (named && key === 'env' && !/^[A-Za-z_]\w*$/.test(node.value)) {
      const message =
        'not the name of an environment variable; write its name alone, such as {env: ADMIN_TOKEN}';
      return [placedFault(placeOf(tree, path), path, message)];
    }
    if (named && key === 'env') {
      return env[node.value] === undefined
        ? [
            faultAt(
              tree,
              path,
              `${secretPlaceText({ env: node.value })} is not set; set it for the agent’s process`,
            ),
          ]
        : [];
    }
    if (!fileKeys.has(key) && !(named && key === 'file')) return [];
    const place = resolve(cwd, node.value);
    const trouble =
      unreadableFile(place) ?? (files.statSync(place).isFile() ? undefined : 'not a regular file');
    const placeName = fileKeys.has(key) ? `file ${node.value}` : secretPlaceText({ file: node.value });
    if (!trouble && files.statSync(place).size === 0 && !fileKeys.has(key)) {
      const message = `${placeName} is empty; write the secret into it`;
      return [placedFault(placeOf(tree, path), path, message)];
    }
    if (!trouble) return [];
    const message = `${placeName} is ${trouble}; create it, readable for the agent’s user`;
    return [placedFault(placeOf(tree, path), path, message)];
  });
}

/** Every file that the configuration names for a secret or a certificate, absolute. */
export function secretFiles(tree: TreeNode, cwd: string): string[] {
  return [...scalarsOf(tree)].flatMap(({ node, path }) => {
    const key = path.at(-1);
    if (typeof node.value !== 'string' || typeof key !== 'string') return [];
    const isNamed = fileKeys.has(key) || (key === 'file' && isSecret(path.slice(0, -1)));
    return isNamed ? [resolve(cwd, node.value)] : [];
  });
}

/** Findings for secrets that are written in the file itself and not read from a variable. */
export function literalSecrets(tree: TreeNode, file: string): PlacedFault[] {
  return [...scalarsOf(tree)]
    .filter(({ node, path }) => {
      const key = path.at(-1);
      const reference = key === 'env' || key === 'file';
      return (
        isSecret(path) &&
        !path.some((step) => hashKeys.has(String(step))) &&
        !(reference && isSecret(path.slice(0, -1))) &&
        key !== 'username' &&
        !(path.at(-2) === 'headers' && openHeaders.test(String(key))) &&
        !isNull(node) &&
        node.written === undefined &&
        node.place.file === file
      );
    })
    .map(({ path }) => faultAt(tree, path, 'a secret in the file itself; use {env: NAME} or {file: PATH}'));
}

/** Paths of the blocks with certificates: `tls` of listeners and of connections. */
const tlsPaths = (tree: MapNode): TreePath[] =>
  [...scalarsOf(tree)].flatMap(({ path }) =>
    /^cert_?file$/i.test(String(path.at(-1))) ? [path.slice(0, -1)] : [],
  );

const readFile = regularFileReaderSync(files);

/** The bytes of a file; undefined if it cannot be read, which is a separate finding. */
function bytesOf(file: string | undefined, cwd: string): Buffer | undefined {
  try {
    return file === undefined ? undefined : readFile(resolve(cwd, file));
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
  const fault = certificateFilesFault({ certFile, keyFile, clientCaFile });
  if (fault) return [faultAt(tree, pathOf(fault.key), `${fault.what}; ${fault.allowed}`)];
  const endMs = expiredSince(certFile, nowMs);
  if (endMs === undefined) return [];
  return [faultAt(tree, pathOf('certFile'), `expired on ${new Date(endMs).toISOString()}; renew it`)];
}

/** Findings for files of authorities without a certificate, with which no server is trusted. */
const authoritiesUnfit = (tree: MapNode, cwd: string): PlacedFault[] =>
  [...scalarsOf(tree)].flatMap(({ node, path }) => {
    const isOf = /^ca_?file$/i.test(String(path.at(-1))) && typeof node.value === 'string';
    const bytes = isOf ? bytesOf(node.value as string, cwd) : undefined;
    if (!bytes || hasCertificate(bytes)) return [];
    return [faultAt(tree, path, 'contains no certificate; use a PEM file of the CAs that sign the server’s')];
  });

/**
 * Findings for certificates of listeners and of connections that cannot be used: they are no PEM, are expired, or belong to
 * another key.
 */
export function certificatesUnfit(tree: MapNode, { cwd }: Pick<LoadRequest, 'cwd'>): PlacedFault[] {
  const ofPairs = tlsPaths(tree).flatMap((path) => unfitAt(tree, path, cwd, Date.now()));
  return [...ofPairs, ...authoritiesUnfit(tree, cwd)];
}
