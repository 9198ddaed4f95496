import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { root } from '../../unit/house/imports.ts';

/** A Kubernetes object as it stands in YAML. */
// biome-ignore lint/suspicious/noExplicitAny: its shape is what the tests are about.
export type Manifest = any;

export const kubernetes = join(root, 'deploy/kubernetes');

const version = spawnSync('kubectl', ['version', '--client'], { encoding: 'utf8' });
/** Debian's own version is too old for components; the version of Kubernetes 1.27 is not. */
export const hasKustomize = /Kustomize Version: v[5-9]/.test(version.stdout ?? '');

export const documents = (text: string): Manifest[] =>
  parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    const manifest = document.toJS() as Manifest;
    if (manifest === null) return [];
    return manifest.kind === 'List' ? manifest.items : [manifest];
  });

/** What `kubectl apply -k` would send. Throws kubectl's error. */
export function rendered(folder: string): Manifest[] {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], {
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw new Error(stderr);
  return documents(stdout);
}

const kustomizations = readdirSync(kubernetes, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('kustomization.yaml'))
  .map((path) => join(kubernetes, path));

/** Files of whole objects, not patches, that a kustomization of ours names. */
export const resourceFiles = kustomizations.flatMap((file) =>
  ((parse(readFileSync(file, 'utf8')) as { resources?: string[] }).resources ?? [])
    .filter((resource) => resource.endsWith('.yaml'))
    .map((resource) => join(dirname(file), resource)),
);

/** A readable name for a failure message. */
export const nameOf = ({ kind, metadata }: Manifest): string =>
  `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
