import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { newFolder } from '../../folder.ts';
import { root } from '../../unit/house/imports.ts';
import { chart, hasHelm, helm, kubeVersion, templated } from './helm.ts';
import { documents, kubernetes, type Manifest, nameOf } from './kustomize.ts';
import { faultsOf, hasModels } from './schema.ts';

const everything = {
  nodeAgent: { enabled: true, tolerations: [{ operator: 'Exists' }] },
  podMonitors: { enabled: true, labels: { release: 'prometheus' } },
  imagePullSecrets: [{ name: 'registry' }],
  'clusterAgent.secretName': 'svc-agent-stores',
  'clusterAgent.storage.className': 'fast',
};

const written = (path: string): Manifest[] => documents(readFileSync(join(kubernetes, path), 'utf8'));

/** A pod's template without what only one of the two ways has: names of images, and how the cluster's name is set. */
function comparable(manifest: Manifest): Manifest {
  const template = structuredClone(manifest.spec.template);
  const { spec } = template;
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) {
    container.image = container.image.replace(/:.*/, '');
    delete container.imagePullPolicy;
    const other = (container.env ?? []).filter(({ name }: Manifest) => name !== 'SVC_CLUSTER');
    if (container.env) container.env = other.sort((a: Manifest, b: Manifest) => (a.name < b.name ? -1 : 1));
  }
  return template;
}

describe.skipIf(!hasHelm)('the Helm chart', () => {
  let all: Manifest[];
  const find = (kind: string, name: string) =>
    all.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)!;
  beforeAll(() => {
    all = templated(chart, everything);
  });

  test('passes helm lint', () => {
    const { status, stdout } = helm('lint', '--strict', ...kubeVersion, chart);
    expect(status, stdout).toBe(0);
  });

  test.skipIf(!hasModels)('renders objects that follow the published schemas', () => {
    const faults = [...templated(chart), ...all].flatMap((manifest) =>
      faultsOf(manifest).map((fault) => `${nameOf(manifest)}: ${fault}`),
    );
    expect(faults).toEqual([]);
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      'ConfigMap',
      'ConfigMap',
      'ConfigMap',
      'DaemonSet',
      ...Array(6).fill('PodMonitor'),
      'ServiceAccount',
      'ServiceAccount',
      'StatefulSet',
    ]);
  });

  test.each([
    ['StatefulSet', 'svc-cluster-agent', 'cluster-agent/statefulset.yaml'],
    ['DaemonSet', 'svc-node-agent', 'node-agent/daemonset.yaml'],
  ])('%s %s has the pod of the Kustomize base', (kind, name, path) => {
    const base = written(path).find((manifest) => manifest.kind === kind)!;
    const plain = templated(chart, {
      'nodeAgent.enabled': true,
      'clusterAgent.secretName': 'svc-agent-stores',
    }).find((manifest) => manifest.kind === kind && manifest.metadata.name === name)!;
    expect(comparable(plain)).toEqual(comparable(base));
    expect(plain.spec.selector).toEqual(base.spec.selector);
  });

  test('its monitors are those of the Kustomize base', () => {
    const endpoints = (manifests: Manifest[]) =>
      manifests
        .filter(({ kind }) => kind === 'PodMonitor')
        .map(({ metadata, spec }) => [
          metadata.name,
          JSON.parse(JSON.stringify(spec.podMetricsEndpoints).replaceAll('set-by-kustomization', 'dc1')),
        ])
        .sort();
    const base = [...written('monitoring/pod-monitors.yaml'), ...written('node-agent/pod-monitor.yaml')];
    expect(endpoints(all)).toEqual(endpoints(base));
  });

  test('its configurations are those of the Kustomize base, but for what belongs to an installation', () => {
    const own = (name: string) => parse(find('ConfigMap', name).data['agent.yaml']);
    const base = (path: string) => parse(readFileSync(join(kubernetes, path), 'utf8'));
    expect(own('svc-agent-node')).toEqual(base('node-agent/agent.yaml'));
    expect({ ...own('svc-agent-cluster-wide'), stores: undefined }).toEqual({
      ...base('cluster-agent/agent.yaml'),
      stores: undefined,
    });
    expect(own('svc-agent-sidecar')).toEqual({
      ...base('components/sidecar/agent.yaml'),
      clusterGroupMetadata: undefined,
    });
  });

  test.each([
    [{ clusterAgnt: { enabled: true } }, /clusterAgnt/],
    [{ 'clusterAgent.enabled': 'yes' }, /clusterAgent[./]enabled/],
    [{ 'image.digest': 'latest' }, /image[./]digest/],
    [{ 'podMonitors.interval': '15' }, /podMonitors[./]interval/],
  ])('refuses the values %j', (values, message) => {
    expect(() => templated(chart, values)).toThrow(message);
  });

  test('an image by digest, another registry, another namespace of the pods', () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    const [daemonSet] = templated(chart, {
      image: { repository: 'registry.example.com/svc-agent', digest },
      nodeAgent: { enabled: true, podNamespace: 'workflows' },
    }).filter(({ kind }) => kind === 'DaemonSet');
    const [agent] = daemonSet.spec.template.spec.containers;
    expect(agent.image).toBe(`registry.example.com/svc-agent@${digest}`);
    expect(agent.env).toContainEqual({ name: 'SVC_NAMESPACE', value: 'workflows' });
  });

  describe('as a dependency of the service’s own chart', () => {
    const folder = newFolder(afterAll);

    test('gives its pods the sidecar of the Kustomize base', () => {
      cpSync(chart, join(folder, 'charts/svc-agent'), { recursive: true });
      mkdirSync(join(folder, 'templates'));
      writeFileSync(
        join(folder, 'Chart.yaml'),
        'apiVersion: v2\nname: service\nversion: 9.9.9\nappVersion: 9.9.9\n' +
          'dependencies: [{name: svc-agent, version: 1.0.0}]\n',
      );
      writeFileSync(
        join(folder, 'templates/role.yaml'),
        'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: role}\nspec:\n  template:\n' +
          '    metadata: {labels: {svc-agent/placement: sidecar}}\n    spec:\n      containers: []\n' +
          '      initContainers:\n        {{- include "svc-agent.sidecar" . | nindent 8 }}\n' +
          '      volumes:\n        {{- include "svc-agent.sidecarVolumes" . | nindent 8 }}\n',
      );
      const rendered = templated(folder, { 'svc-agent.cluster': 'dc2' });
      const role = rendered.find(({ metadata }) => metadata.name === 'role')!;
      const base = written('components/sidecar/sidecar.yaml')[0];
      expect(comparable(role)).toEqual({
        ...comparable({
          ...base,
          spec: { template: { ...base.spec.template, spec: { containers: [], ...base.spec.template.spec } } },
        }),
      });
      const [sidecar] = role.spec.template.spec.initContainers;
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
      expect(sidecar.image).toBe(`svc-agent:${version}`);
      expect(sidecar.env).toContainEqual({ name: 'SVC_CLUSTER', value: 'dc2' });
      expect(rendered.some(({ metadata }) => metadata.name === 'svc-agent-sidecar')).toBe(true);
    });
  });
});
