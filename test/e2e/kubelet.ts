import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { podman } from './podman.ts';
import { start } from './process.ts';

// A node without an API server, with static pods; `.ci/kubelet` provides the kubelet and containerd.

const programs = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-agent/bin');
export const hasKubelet =
  process.getuid?.() === 0 && ['kubelet', 'containerd'].every((name) => existsSync(join(programs, name)));

export interface KubernetesNode {
  /** Runs a static pod. Its hostPath volumes are below folders that belong only to the node. */
  run(pod: { metadata: { name: string } }): void;
  /** Runs a program in the node’s name spaces; returns its output. */
  inside(program: string, ...args: string[]): string;
  /** The pids, in the node, of the running containers with this name. */
  pidsOf(container: string): string[];
  output(): string;
  end(): Promise<unknown>;
}

/**
 * Starts a node with these images of podman, and these settings of the kubelet. It has separate name spaces for mounts and
 * processes, so that everything that it starts ends with it, and uses the network of the machine.
 */
export async function startNode(
  place: string,
  images: readonly string[],
  sandboxImage: string,
  settings: object,
): Promise<KubernetesNode> {
  const pods = join(place, 'pods');
  const disk = join(place, 'containerd');
  for (const path of [pods, disk]) mkdirSync(path);
  podman('save', '--multi-image-archive', '--output', join(place, 'images.tar'), ...images);
  const socket = '/run/containerd/containerd.sock';
  writeFileSync(
    join(place, 'containerd.toml'),
    `version = 2
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${sandboxImage}"
  disable_apparmor = true
  # Root of a container may not make its processes safer from the kernel than they are.
  restrict_oom_score_adj = true
`,
  );
  const configuration = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '127.0.0.1',
    port: await freePort(),
    healthzPort: 0,
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    cgroupDriver: 'cgroupfs',
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    failCgroupV1: false,
    staticPodPath: pods,
    containerRuntimeEndpoint: `unix://${socket}`,
    evictionHard: {},
    imageGCHighThresholdPercent: 100,
    resolvConf: '',
    ...settings,
  };
  writeFileSync(join(place, 'kubelet.json'), JSON.stringify(configuration));
  writeFileSync(
    join(place, 'node.sh'),
    `set -eu
for path in /run /var/lib /var/log; do mount -t tmpfs tmpfs $path; done
mkdir /var/log/pods /var/lib/containerd
mount --bind ${disk} /var/lib/containerd
containerd -c ${place}/containerd.toml > ${place}/containerd.log 2>&1 &
until ctr version > /dev/null 2>&1; do sleep 0.1; done
ctr -n k8s.io images import ${place}/images.tar
exec kubelet --config ${place}/kubelet.json --hostname-override node
`,
  );
  const node = start(
    'unshare',
    ['-m', '-p', '-f', '--mount-proc', '--kill-child', 'sh', join(place, 'node.sh')],
    {
      PATH: `${programs}:${process.env.PATH}`,
    },
  );
  const failed = node.ended.then((status) =>
    Promise.reject(new Error(`the node ended with ${status}: ${node.output()}`)),
  );
  failed.catch(() => {});
  const child = () => spawnSync('pgrep', ['-P', String(node.child.pid)], { encoding: 'utf8' }).stdout.trim();
  const inside = (program: string, ...args: string[]) =>
    spawnSync('nsenter', ['-t', child(), '-m', '-p', program, ...args], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${programs}:${process.env.PATH}` },
    }).stdout;
  await Promise.race([
    failed,
    until('the kubelet syncs pods', () => node.output().includes('Starting kubelet main sync loop')),
  ]);
  return {
    run: (pod) => writeFileSync(join(pods, `${pod.metadata.name}.json`), JSON.stringify(pod)),
    inside,
    pidsOf(container) {
      const ids = inside(
        'ctr',
        '-n',
        'k8s.io',
        'containers',
        'ls',
        '-q',
        `labels."io.kubernetes.container.name"==${container}`,
      );
      return inside('ctr', '-n', 'k8s.io', 'tasks', 'ls')
        .split('\n')
        .map((line) => line.split(/\s+/))
        .flatMap(([id = '', pid = '', state]) => (state === 'RUNNING' && ids.includes(id) ? [pid] : []));
    },
    output: node.output,
    end: () => node.end('SIGKILL'),
  };
}
