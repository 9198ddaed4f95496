import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { newFolder } from '../../folder.ts';
import { isInstalled } from '../../installed.ts';
import { root } from '../../unit/house/imports.ts';
import { hasKustomize, kubernetes, type Manifest, nameOf, rendered } from './kustomize.ts';

const hasPromtool = isInstalled('promtool');
const roles = ['frontend', 'history', 'matching', 'worker'];
/** Secrets, which are created by hand. */
const ownSecrets = ['svc-agent-stores'];

const podOf = (manifest: Manifest): Manifest => manifest.spec.template.spec;
const isWorkload = ({ kind }: Manifest) => ['Deployment', 'StatefulSet', 'DaemonSet'].includes(kind);
const isRole = ({ metadata }: Manifest) => roles.includes(metadata.labels?.['app.kubernetes.io/component']);
const ofPod = (pod: Manifest): Manifest[] => [...(pod.initContainers ?? []), ...pod.containers];
const isOurs = ({ image }: Manifest) => !image.startsWith('workflow-service');
const agentOf = (pod: Manifest): Manifest => ofPod(pod).find(({ name }) => name === 'svc-agent');
const bytes = (quantity: string): number => {
  const [, number, unit = ''] = /^(\d+)([KMG]i)?$/.exec(quantity) ?? [];
  return Number(number) * { '': 1, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 }[unit]!;
};

describe.skipIf(!hasKustomize).each(['shared-volume', 'node-agent'])('overlay %s', (overlay) => {
  let all: Manifest[];
  let workloads: Manifest[];
  const named = (kind: string, name: string, namespace: string) =>
    all.find(
      (manifest) =>
        manifest.kind === kind &&
        manifest.metadata.name === name &&
        manifest.metadata.namespace === namespace,
    );
  beforeAll(() => {
    all = rendered(join(kubernetes, 'overlays', overlay));
    workloads = all.filter(isWorkload);
  });

  test('every role has an agent beside it, and one agent is the cluster’s', () => {
    expect(workloads.filter(isRole).map(({ metadata }) => metadata.name)).toEqual(roles);
    for (const workload of workloads) expect(agentOf(podOf(workload)), nameOf(workload)).toBeDefined();
    const [cluster] = workloads.filter(({ kind }) => kind === 'StatefulSet');
    expect(cluster.spec.replicas).toBe(1);
  });

  test('an agent never holds its role up', () => {
    for (const role of workloads.filter(isRole)) {
      for (const beside of podOf(role).initContainers) {
        expect(beside.restartPolicy, nameOf(role)).toBe('Always');
        for (const key of ['startupProbe', 'readinessProbe', 'lifecycle'])
          expect(beside, `${nameOf(role)} ${beside.name}`).not.toHaveProperty(key);
      }
      expect(agentOf(podOf(role)).livenessProbe.httpGet.path).toBe('/health');
    }
  });

  test('what is ours runs as no root user, with a read-only root and no capability', () => {
    for (const workload of workloads) {
      const pod = podOf(workload);
      for (const container of ofPod(pod).filter(isOurs)) {
        const where = `${nameOf(workload)} ${container.name}`;
        const { allowPrivilegeEscalation, capabilities, readOnlyRootFilesystem, privileged } =
          container.securityContext;
        expect(capabilities, where).toEqual({ drop: ['ALL'] });
        expect([allowPrivilegeEscalation, readOnlyRootFilesystem, privileged], where).toEqual([
          false,
          true,
          undefined,
        ]);
        const context = { ...pod.securityContext, ...container.securityContext };
        expect(context.seccompProfile, where).toEqual({ type: 'RuntimeDefault' });
        // This container opens the state's folder on the node, and ends.
        if (container.name === 'state-folder') continue;
        expect(context.runAsNonRoot, where).toBe(true);
        expect(context.runAsUser, where).toBeGreaterThan(0);
      }
      expect(pod.automountServiceAccountToken, nameOf(workload)).toBe(false);
      expect([pod.hostNetwork, pod.hostPID, pod.hostIPC], nameOf(workload)).toEqual(Array(3).fill(undefined));
    }
  });

  test('an agent writes to its state and nowhere else', () => {
    for (const workload of workloads) {
      const { volumeMounts } = agentOf(podOf(workload));
      const writable = volumeMounts.filter(({ readOnly }: Manifest) => !readOnly);
      const paths = writable.map(({ mountPath }: Manifest) => mountPath);
      expect(paths.filter((path: string) => path !== '/tmp')).toEqual(['/var/lib/svc-agent']);
      for (const { mountPath, ...mount } of volumeMounts)
        expect(mount, `${nameOf(workload)} ${mountPath}: never updated`).not.toHaveProperty('subPath');
    }
  });

  test('memory has a limit, processor time has none', () => {
    for (const workload of workloads) {
      for (const { name, resources } of ofPod(podOf(workload)).filter(isOurs)) {
        expect(Object.keys(resources.limits), `${nameOf(workload)} ${name}`).toEqual(['memory']);
        expect(Object.keys(resources.requests).sort()).toEqual(['cpu', 'memory']);
      }
    }
  });

  test('images have a tag that stays', () => {
    for (const workload of workloads) {
      for (const { image } of ofPod(podOf(workload))) expect(image).toMatch(/:\d[\w.]*$|@sha256:/);
    }
  });

  test('every volume, mount, secret, variable and account is there', () => {
    for (const workload of workloads) {
      const { namespace } = workload.metadata;
      const pod = podOf(workload);
      const volumes = new Map<string, Manifest>(
        (pod.volumes ?? []).map((volume: Manifest) => [volume.name, volume]),
      );
      const claims = (workload.spec.volumeClaimTemplates ?? []).map(
        ({ metadata }: Manifest) => metadata.name,
      );
      for (const container of ofPod(pod)) {
        for (const { name } of container.volumeMounts ?? [])
          expect([...volumes.keys(), ...claims], nameOf(workload)).toContain(name);
        for (const { name, valueFrom } of container.env ?? []) {
          const from = valueFrom?.configMapKeyRef;
          if (from) expect(named('ConfigMap', from.name, namespace)?.data, name).toHaveProperty(from.key);
        }
      }
      for (const { configMap, secret } of volumes.values()) {
        if (configMap) expect(named('ConfigMap', configMap.name, namespace), configMap.name).toBeDefined();
        if (secret) expect(ownSecrets).toContain(secret.secretName);
      }
      const account = pod.serviceAccountName;
      if (account) expect(named('ServiceAccount', account, namespace)).toBeDefined();
      expect(all.some(({ kind, metadata }) => kind === 'Namespace' && metadata.name === namespace)).toBe(
        true,
      );
    }
  });

  test('one job per role, one for the rest, each of pods and ports that are there, with the cluster’s name', () => {
    const seen = new Map<string, string[]>();
    for (const monitor of all.filter(({ kind }) => kind === 'PodMonitor')) {
      const [endpoint, ...others] = monitor.spec.podMetricsEndpoints;
      expect(others).toEqual([]);
      const set = (label: string) =>
        endpoint.relabelings.find(({ targetLabel }: Manifest) => targetLabel === label)?.replacement;
      const chosen = workloads.filter(
        (workload) =>
          workload.metadata.namespace === monitor.metadata.namespace &&
          selects(monitor.spec.selector, workload.spec.template.metadata.labels),
      );
      for (const workload of chosen) {
        const ports = agentOf(podOf(workload)).ports.map(({ name }: Manifest) => name);
        expect(ports, nameOf(workload)).toContain(endpoint.port);
        const key = `${set('job')}?service=${endpoint.params.service}`;
        seen.set(key, [...(seen.get(key) ?? []), workload.metadata.name]);
      }
      expect([set('cluster'), endpoint.honorLabels], nameOf(monitor)).toEqual(['dc1', true]);
    }
    const others = overlay === 'node-agent' ? ['svc-node-agent'] : [];
    expect(Object.fromEntries([...seen].map(([key, names]) => [key, names.sort()]))).toEqual({
      ...Object.fromEntries(roles.map((role) => [`${role}?service=${role}`, [role]])),
      'svc-agent?service=agent': [...roles, 'svc-cluster-agent', ...others].sort(),
    });
  });

  test('every dashboard is there', () => {
    const files = readdirSync(join(root, 'dashboards')).filter((file) => file.endsWith('.json'));
    const shown = all
      .filter(({ metadata }) => metadata.labels?.grafana_dashboard === '1')
      .flatMap(({ data }) => Object.keys(data));
    expect(shown.sort()).toEqual(files.map((file) => `svc-${file}`).sort());
  });

  test.skipIf(!hasPromtool)('promtool takes the rules', () => {
    const rules = all.filter(({ kind }) => kind === 'PrometheusRule');
    expect(rules).toHaveLength(3);
    const folder = newFolder();
    for (const { metadata, spec } of rules) {
      const file = join(folder, metadata.name);
      writeFileSync(file, stringify(spec));
      const { status, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' });
      expect([status, stderr], metadata.name).toEqual([0, '']);
    }
  });
});

function selects({ matchLabels = {}, matchExpressions = [] }: Manifest, labels: Record<string, string>) {
  return (
    Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
    matchExpressions.every(({ key, operator, values }: Manifest) => {
      expect(operator).toBe('In');
      return values.includes(labels[key]);
    })
  );
}

describe.skipIf(!hasKustomize)('log set-ups', () => {
  test('a shared volume: role, agent and rotation have it, rotation as the role’s user, within its size', () => {
    const all = rendered(join(kubernetes, 'overlays/shared-volume'));
    for (const role of all.filter((manifest) => isWorkload(manifest) && isRole(manifest))) {
      const pod = podOf(role);
      const mounts = ofPod(pod).map((container) => [
        container.name,
        container.volumeMounts.find(({ name }: Manifest) => name === 'svc-log')?.readOnly ?? 'writes',
      ]);
      expect(mounts).toEqual([
        ['svc-agent', true],
        ['log-rotation', 'writes'],
        [role.metadata.name, 'writes'],
      ]);
      const rotation = ofPod(pod).find(({ name }) => name === 'log-rotation');
      expect(rotation.securityContext.runAsUser).toBe(pod.securityContext.runAsUser);
      const value = (name: string) =>
        rotation.env.find((variable: Manifest) => variable.name === name)?.value as string;
      const { emptyDir } = pod.volumes.find(({ name }: Manifest) => name === 'svc-log');
      const kept = (Number(value('KEEP')) + 1) * Number(value('MAX_BYTES'));
      expect(kept).toBeLessThanOrEqual(bytes(emptyDir.sizeLimit) / 2);
      expect([Number(value('MAX_AGE_DAYS')) >= 7, Number(value('MAX_AGE_DAYS')) <= 30]).toEqual([true, true]);
    }
  });

  test('the node agent: the host’s logs read-only, by group 0 alone, and its state on the node', () => {
    const all = rendered(join(kubernetes, 'overlays/node-agent'));
    const pod = podOf(all.find(({ kind }) => kind === 'DaemonSet'));
    expect(pod.securityContext.supplementalGroups).toEqual([0]);
    const hosts = pod.volumes.flatMap(({ name, hostPath }: Manifest) =>
      hostPath
        ? [
            [
              hostPath.path,
              agentOf(pod).volumeMounts.find((mount: Manifest) => mount.name === name).readOnly ?? false,
            ],
          ]
        : [],
    );
    expect(hosts).toEqual([
      ['/var/lib/svc-agent', false],
      ['/var/log/pods', true],
    ]);
  });

  test('nodes whose logs only root reads: user 0, still without a capability', () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-agent-as-root-')));
    const ours = relative(folder, kubernetes);
    try {
      writeFileSync(
        join(folder, 'kustomization.yaml'),
        `resources: [${ours}/node-agent]\ncomponents: [${ours}/components/read-as-root]\n`,
      );
      const pod = podOf(rendered(folder).find(({ kind }) => kind === 'DaemonSet'));
      expect([pod.securityContext.runAsUser, pod.securityContext.runAsNonRoot]).toEqual([0, false]);
      expect(agentOf(pod).securityContext.capabilities).toEqual({ drop: ['ALL'] });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
