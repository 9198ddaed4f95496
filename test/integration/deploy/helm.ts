import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { root } from '../../unit/house/imports.ts';
import { documents, type Manifest } from './kustomize.ts';

/** Helm on the path, or else the one that CI builds. */
const cached = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'svc-agent/bin/helm');
const program = ['helm', cached].find((name) => spawnSync(name, ['version']).status === 0);
export const hasHelm = program !== undefined;

export const chart = join(root, 'deploy/helm/svc-agent');

/** Runs Helm to its end. */
export function helm(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(program ?? 'helm', args, { encoding: 'utf8', maxBuffer: 64 * 2 ** 20 });
}

/** A Helm that was built without its release flags assumes the oldest Kubernetes that it knows. */
export const kubeVersion = ['--kube-version', '1.29.0'];

/** What `helm install` would send, with these values over the chart's own (`--set-json`). Throws Helm's error. */
export function templated(folder: string, values: Readonly<Record<string, unknown>> = {}): Manifest[] {
  const set = Object.entries(values).flatMap(([key, value]) => [
    '--set-json',
    `${key}=${JSON.stringify(value)}`,
  ]);
  const { status, stdout, stderr } = helm(
    'template',
    'agents',
    folder,
    '--namespace',
    'svc',
    ...kubeVersion,
    ...set,
  );
  if (status !== 0) throw new Error(stderr);
  return documents(stdout);
}
