import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { newFolder } from '../folder.ts';
import { chart, hasHelm, templated } from '../integration/deploy/helm.ts';
import { kubernetes, type Manifest } from '../integration/deploy/kustomize.ts';
import { until } from '../until.ts';
import { imageOf, podman, podmanWith } from './podman.ts';

// Pods of deploy/kubernetes and of the chart, run by podman with the images that `.ci/containers` has built. They have no network
// but loopback, so that the shipped ports are free, and requests are sent from inside.

const images: Readonly<Record<string, string>> = {
  'svc-agent': imageOf('agent'),
  'svc-agent-tools': imageOf('agent-tools'),
  busybox: imageOf('service'),
};
const hasImages = Object.values(images).every((image) => podman('image', 'exists', image).status === 0);

const place = newFolder(afterAll);
const conf = join(place, 'containers.conf');
writeFileSync(
  conf,
  `[engine]
infra_image = "${imageOf('service')}:latest"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
`,
);
/** Podman stores them as volumes. */
const configMaps = ['svc-agent-cluster', 'svc-agent-cluster-wide', 'svc-agent-sidecar', 'svc-log-rotation'];
const played: string[] = [];
afterEach(() => {
  for (const name of played.splice(0)) {
    podman('pod', 'rm', '--force', '--time', '0', name);
    for (const volume of configMaps) podman('volume', 'rm', '--force', volume);
  }
});

/**
 * A container in the form that podman 4.3 can run: without restartPolicy and ports, and without probes, for which it needs curl
 * in the image.
 */
const playable = ({
  restartPolicy: _,
  ports: _p,
  livenessProbe: _l,
  readinessProbe: _r,
  ...container
}: Manifest) => ({
  ...container,
  image: `${images[container.image.replace(/:.*/, '')] ?? container.image}:latest`,
});

/**
 * The kubelet lets every user write to an emptyDir. Podman gives it to the user of the container that it starts first, which may
 * be the agent, so that the role could not write its log: a directory of the host takes its place.
 */
function openToAll(volume: Manifest): Manifest {
  if (!volume.emptyDir) return volume;
  const path = newFolder();
  chmodSync(path, 0o777);
  return { name: volume.name, hostPath: { path, type: 'Directory' } };
}

/** Builds a pod; sidecars become containers, in the given order. */
const podOf = (name: string, labels: object, spec: Manifest, containers: readonly Manifest[]) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels },
  spec: {
    securityContext: spec.securityContext,
    volumes: spec.volumes,
    containers: containers.map(playable),
  },
});

function play(name: string, documents: readonly object[]): void {
  const file = join(place, `${name}.yaml`);
  writeFileSync(file, documents.map((one) => JSON.stringify(one)).join('\n---\n'));
  played.push(name);
  const { status, stderr } = podmanWith({ CONTAINERS_CONF: conf }, 'kube', 'play', '--network', 'none', file);
  expect(status, stderr).toBe(0);
}

/** The response that a container of a pod gets from an address in the pod. */
function fetched(container: string, node: string, url: string): string | undefined {
  const code = `fetch(${JSON.stringify(url)}).then(async (answer) => process.stdout.write(await answer.text()))`;
  const { status, stdout } = podman('exec', container, node, '-e', code);
  return status === 0 ? stdout : undefined;
}

/**
 * A role that writes 200 lines at once and waits for the rotation, which loses what is written while it copies. It begins when
 * the agent beside it requests its health: otherwise a busy machine may rotate the first lines away before it has started the
 * agent.
 */
const role = `const fs = require('fs'), http = require('http');
const log = '/var/log/svc/history.log';
let n = 0, isWatched = false;
http.createServer((_, to) => {
  isWatched = true;
  to.end('{"ok":true,"msg":"OK"}');
}).listen(7934, '127.0.0.1');
http.createServer((_, to) => to.end('# TYPE written counter\\nwritten ' + n + '\\n')).listen(8001, '127.0.0.1');
const line = () => JSON.stringify({ level: 'info', ts: new Date().toISOString(), logger: 'shard', msg: 'line ' + n++ });
setInterval(() => {
  if (isWatched && n < 1000 && (n === 0 || fs.statSync(log).size === 0))
    fs.appendFileSync(log, Array.from({ length: 200 }, line).join('\\n') + '\\n');
}, 20);`;

const yaml = (path: string): Manifest => parse(readFileSync(join(kubernetes, path), 'utf8'));
const mapOf = (name: string, data: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});

describe.skipIf(!hasImages)('a pod played by podman', () => {
  test('the role, the agent beside it and the rotation: every line is counted once', async () => {
    const volume = 'components/log-volume';
    const sidecar = yaml('components/sidecar/sidecar.yaml').spec.template.spec;
    const logs = yaml(`${volume}/log-volume.yaml`).spec.template.spec;
    const [agent] = sidecar.initContainers;
    const [agentMounts, rotation] = logs.initContainers;
    const sooner: Readonly<Record<string, string>> = { MAX_BYTES: '10000', INTERVAL: '1' };
    const history = {
      name: 'history',
      image: 'busybox',
      command: ['node', '-e', role],
      securityContext: rotation.securityContext,
      volumeMounts: [{ name: 'svc-log', mountPath: '/var/log/svc' }],
    };
    play('history-0', [
      mapOf('svc-agent-cluster', { name: 'dc1' }),
      mapOf('svc-agent-sidecar', {
        'agent.yaml': readFileSync(join(kubernetes, volume, 'agent.yaml'), 'utf8'),
      }),
      mapOf('svc-log-rotation', { 'rotate.sh': readFileSync(join(kubernetes, volume, 'rotate.sh'), 'utf8') }),
      podOf(
        'history-0',
        { 'app.kubernetes.io/component': 'history' },
        { volumes: [...sidecar.volumes, ...logs.volumes].map(openToAll) },
        [
          history,
          {
            ...rotation,
            env: rotation.env.map((one: { name: string }) => ({
              ...one,
              ...(sooner[one.name] && { value: sooner[one.name] }),
            })),
          },
          { ...agent, volumeMounts: [...agent.volumeMounts, ...agentMounts.volumeMounts] },
        ],
      ),
    ]);
    const metrics = () =>
      fetched('history-0-svc-agent', '/nodejs/bin/node', 'http://127.0.0.1:9464/metrics') ?? '';
    const facts = [
      /^svc_log_entries_total\{cluster="dc1",level="info",logger="shard",svc_service="history"\} 1000$/m,
      /^svc_role_up\{.*svc_service="history"\} 1$/m,
      /^written\{.*\} 1000$/m,
    ];
    const shown = (text: string) =>
      [
        text.match(/^(svc_log_|svc_role_up|written).*$/gm)?.join('\n'),
        podman('exec', 'history-0-history', 'ls', '-l', '/var/log/svc').stdout,
        ...['history', 'svc-agent'].map((name) => podman('logs', '--tail', '20', `history-0-${name}`).stderr),
      ].join('\n');
    let page = '';
    await until('all lines are counted', () => {
      page = metrics();
      return facts.every((fact) => fact.test(page));
    }).catch((cause: unknown) => {
      throw new Error(`not every line is counted once:\n${shown(page)}`, { cause });
    });
    const rotated = podman('exec', 'history-0-history', 'ls', '/var/log/svc').stdout;
    expect(rotated).toContain('history.log.3');
    // The other roles are in the configuration, but do not run here.
    expect(page).not.toMatch(/svc_service="frontend"/);
  });

  test.skipIf(!hasHelm)('the cluster agent of the chart, as Helm renders it', async () => {
    const documents = templated(chart);
    const set = documents.find(({ kind }) => kind === 'StatefulSet');
    const { metadata, spec } = set.spec.template;
    const claims = set.spec.volumeClaimTemplates.map(({ metadata: { name } }: Manifest) => ({
      name,
      emptyDir: {},
    }));
    const maps = documents.filter(({ kind }) => kind === 'ConfigMap');
    const name = 'cluster-agent-0';
    play(name, [
      ...maps,
      podOf(
        name,
        metadata.labels,
        { ...spec, volumes: [...(spec.volumes ?? []), ...claims] },
        spec.containers,
      ),
    ]);
    const container = `${name}-${spec.containers[0].name}`;
    const isReady = () => fetched(container, 'node', 'http://127.0.0.1:9464/ready')?.includes('"ok":true');
    await until('it is ready', isReady);
    expect(podman('inspect', '--format', '{{.Config.User}}', container).stdout).toMatch(/^65532/);
  });
});
