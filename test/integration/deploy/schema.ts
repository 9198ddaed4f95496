import type { Manifest } from './kustomize.ts';

interface Model {
  validate(): void;
  [key: string]: unknown;
}
type ModelOf = new (manifest: Manifest) => Model;
type Models = Record<string, ModelOf>;

/** The package's classes of one API group; undefined if it is not installed. */
const load = (specifier: string): Promise<Models | undefined> =>
  import(specifier).then(
    (models) => models as Models,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND') return undefined;
      throw error;
    },
  );

const groups: Readonly<Record<string, string>> = {
  v1: 'kubernetes-models/v1',
  'apps/v1': 'kubernetes-models/apps/v1',
  'monitoring.coreos.com/v1': '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1',
};
const loaded = new Map<string, Models | undefined>();
for (const [group, specifier] of Object.entries(groups)) loaded.set(group, await load(specifier));

export const hasModels = [...loaded.values()].every((models) => models !== undefined);

/**
 * Records the keys that nobody reads: the validators are generated code that reads every key of a schema and ignores the others,
 * while a server with field validation does not.
 */
function watched(value: unknown, path: string, unread: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const inner = new Map<PropertyKey, unknown>();
  for (const [key, child] of Object.entries(value)) {
    const at = `${path}.${key}`;
    if (!Array.isArray(value)) unread.add(at);
    inner.set(key, watched(child, at, unread));
  }
  return new Proxy(value, {
    get(target, key) {
      unread.delete(`${path}.${String(key)}`);
      return inner.has(key) ? inner.get(key) : Reflect.get(target, key);
    },
    ownKeys(target) {
      // A reader that lists the keys accepts any: labels, data.
      for (const key of Object.keys(target)) unread.delete(`${path}.${key}`);
      return Reflect.ownKeys(target);
    },
  });
}

/** Fields of the operator's present schema (since its version 0.66) that the models do not have yet. */
const newerKey = /^spec\.groups\.\d+\.rules\.\d+\.keep_firing_for$/;

/** What is wrong with a manifest according to the published schemas: types, values, missing and unknown keys. */
export function faultsOf(manifest: Manifest): string[] {
  const model = loaded.get(manifest.apiVersion)?.[manifest.kind];
  if (!model) return [`${manifest.apiVersion} ${manifest.kind}: unknown kind`];
  const unread = new Set<string>();
  // The object is watched from here on: the constructor makes a copy.
  const object = new model(manifest);
  for (const [key, value] of Object.entries(manifest)) object[key] = watched(value, key, unread);
  try {
    object.validate();
  } catch (error) {
    return [(error as Error).message];
  }
  return [...unread].filter((path) => !newerKey.test(path)).map((path) => `${path}: unknown key`);
}
