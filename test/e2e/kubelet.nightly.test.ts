import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { newFolder } from '../folder.ts';
import { kubernetes, type Manifest } from '../integration/deploy/kustomize.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { hasKubelet, type KubernetesNode, startNode } from './kubelet.ts';
import { hasImages, imageOf } from './podman.ts';

// The DaemonSet of deploy/kubernetes on a real kubelet with containerd, which writes and rotates /var/log/pods.

const place = newFolder(afterAll);
let node: KubernetesNode | undefined;
afterAll(() => node?.end());

const lines = 20_000;
/** A role that logs to standard output, and then waits to be ended. */
const role = `let n = 0;
const line = () => JSON.stringify({ level: 'info', ts: new Date().toISOString(), logger: 'shard', msg: 'line ' + n++ });
const timer = setInterval(() => {
  process.stdout.write(Array.from({ length: 10 }, line).join('\\n') + '\\n');
  if (n >= ${lines}) clearInterval(timer);
}, 10);
setInterval(() => {}, 1000);
process.on('SIGTERM', () => process.exit(0));`;

/** The pod of the DaemonSet as a static pod: without an API server there are no ConfigMaps and no service accounts. */
function daemonPod(configuration: string, port: number): Manifest {
  const path = join(kubernetes, 'node-agent/daemonset.yaml');
  const documents = parseAllDocuments(readFileSync(path, 'utf8')).map((one) => one.toJS() as Manifest);
  const { metadata, spec } = documents.find(({ kind }) => kind === 'DaemonSet').spec.template;
  const { serviceAccountName: _, automountServiceAccountToken: _t, ...kept } = spec;
  const local = (container: Manifest) => ({
    ...container,
    image: `${imageOf('agent')}:latest`,
    imagePullPolicy: 'Never',
    ...(container.ports && { ports: [{ name: 'svc-agent', containerPort: port }] }),
    env: container.env?.map(({ name, value, valueFrom }: Manifest) =>
      valueFrom?.configMapKeyRef ? { name, value: 'dc1' } : { name, value, valueFrom },
    ),
  });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, name: 'svc-node-agent', namespace: 'svc-node-agent' },
    spec: {
      ...kept,
      hostNetwork: true,
      nodeSelector: undefined,
      initContainers: kept.initContainers.map(local),
      containers: kept.containers.map(local),
      volumes: kept.volumes.map((volume: Manifest) =>
        volume.configMap
          ? { name: volume.name, hostPath: { path: configuration, type: 'Directory' } }
          : volume,
      ),
    },
  };
}

test.skipIf(!hasKubelet || !hasImages)(
  'the kubelet rotates the log of a role, the agent of the node is killed, and every line counts once',
  async () => {
    const port = await freePort();
    const configuration = join(place, 'config');
    mkdirSync(configuration, { mode: 0o755 });
    const agent = parse(readFileSync(join(kubernetes, 'node-agent/agent.yaml'), 'utf8')) as Manifest;
    agent.metrics.pullmetrics.listenAddress = `0.0.0.0:${port}`;
    agent.admin.listenAddress = `127.0.0.1:${await freePort()}`;
    writeFileSync(join(configuration, 'agent.yaml'), JSON.stringify(agent));
    const images = ['agent', 'service'].map((name) => `${imageOf(name)}:latest`);
    // There are more files than the role fills: lines that the kubelet deletes unread would be lost.
    const rotation = {
      containerLogMaxSize: '50Ki',
      containerLogMaxFiles: 1000,
      containerLogMonitorInterval: '3s',
    };
    const started = await startNode(place, images, images[1]!, rotation);
    node = started;
    started.run(daemonPod(configuration, port));
    // Lines that are there when the agent looks for the first time would be passed over.
    await until('the agent is ready', async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok);
    started.run({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'history-0', namespace: 'svc' },
      spec: {
        hostNetwork: true,
        containers: [
          { name: 'history', image: images[1], imagePullPolicy: 'Never', command: ['node', '-e', role] },
        ],
      },
    } as Manifest);
    const counted = async () => {
      const page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const entries =
        /^svc_log_entries_total\{cluster="dc1",level="info",logger="shard",svc_service="history"\} (\d+)$/m;
      return Number(entries.exec(page)?.[1] ?? 0);
    };
    for (const share of [1 / 4, 1 / 2, 1]) {
      await until(`${share} of the lines are counted`, async () => (await counted()) >= lines * share);
      const [pid] = started.pidsOf('svc-agent');
      expect(started.inside('cat', `/proc/${pid}/status`)).toMatch(/^Uid:\s+65532/m);
      started.inside('kill', '-KILL', pid!);
      await until('the kubelet has started it again', () => {
        const [next] = started.pidsOf('svc-agent');
        return next !== undefined && next !== pid;
      });
    }
    // All files are still there. A role that the kubelet had to start again has begun at 0.
    const files = '/var/log/pods/svc_history-0*/history';
    const written = () => Number(started.inside('sh', '-c', `zcat -f ${files}/* | wc -l`));
    const found = await until('as much is counted as was written', async () => {
      const entries = await counted();
      return entries >= written() && entries;
    });
    expect(found).toBe(written());
    expect(started.inside('sh', '-c', `ls ${files}`).match(/^\d\.log\.\d+-\d+/gm)?.length).toBeGreaterThan(3);
  },
  1_800_000,
);
