import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  documents,
  hasKustomize,
  kubernetes,
  type Manifest,
  nameOf,
  rendered,
  resourceFiles,
} from './kustomize.ts';
import { faultsOf, hasModels } from './schema.ts';

const faults = (manifests: readonly Manifest[]) =>
  manifests.flatMap((manifest) => faultsOf(manifest).map((fault) => `${nameOf(manifest)}: ${fault}`));

const good = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'a', labels: { any: 'label' } },
  spec: {
    selector: { matchLabels: { any: 'label' } },
    template: {
      metadata: { labels: { any: 'label' } },
      spec: {
        initContainers: [{ name: 'b', image: 'b', restartPolicy: 'Always' }],
        containers: [{ name: 'a', image: 'a', ports: [{ containerPort: 1 }] }],
      },
    },
  },
};
const container = (more: object): Manifest => {
  const bad = structuredClone(good) as Manifest;
  Object.assign(bad.spec.template.spec.containers[0], more);
  return bad;
};

const monitor = (endpoint: object): Manifest => ({
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PodMonitor',
  metadata: { name: 'a' },
  spec: { selector: {}, podMetricsEndpoints: [endpoint] },
});

describe.skipIf(!hasModels)('manifests by the schemas of kubernetes-models', () => {
  test('the schemas catch what a server would', () => {
    expect(faultsOf(good)).toEqual([]);
    expect(faultsOf(container({ volumeMount: [] }))).toEqual([
      'spec.template.spec.containers.0.volumeMount: unknown key',
    ]);
    expect(faultsOf(container({ ports: [{ containerPort: '1' }] }))[0]).toMatch(/must be integer/);
    expect(faultsOf(container({ imagePullPolicy: 'Sometimes' }))[0]).toMatch(/allowed values/);
    expect(faultsOf(monitor({ port: 'a', params: { service: ['a'] } }))).toEqual([]);
    expect(faultsOf(monitor({ prt: 'a' }))).toEqual(['spec.podMetricsEndpoints.0.prt: unknown key']);
    expect(faultsOf({ ...good, kind: 'Deploymant' })).toEqual(['apps/v1 Deploymant: unknown kind']);
  });

  test('every object that a kustomization names', () => {
    const manifests = resourceFiles.flatMap((file) => documents(readFileSync(file, 'utf8')));
    expect(manifests.length).toBeGreaterThan(15);
    expect(faults(manifests)).toEqual([]);
  });

  test.skipIf(!hasKustomize).each(['shared-volume', 'node-agent'])(
    'all that overlay %s renders',
    (overlay) => {
      expect(faults(rendered(`${kubernetes}/overlays/${overlay}`))).toEqual([]);
    },
  );
});
