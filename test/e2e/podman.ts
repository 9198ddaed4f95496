import { spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';

// Podman with the images that `.ci/containers` has built.

const images = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'svc-agent/images');
/** Runs podman with the storage driver of the store, which `.ci/containers` created. */
export const podman = (...args: string[]) => podmanWith({}, ...args);

/** Runs podman with these variables in its environment. */
export const podmanWith = (env: NodeJS.ProcessEnv, ...args: string[]) => {
  const driver = ['overlay', 'vfs'].find((name) => isDriver(name)) ?? 'vfs';
  const store = [
    '--storage-driver',
    driver,
    '--root',
    join(images, 'store'),
    '--runroot',
    join(images, 'run'),
  ];
  return spawnSync('podman', [...store, '--cgroup-manager=cgroupfs', '--runtime', 'runc', ...args], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
};
const isDriver = (name: string) => spawnSync('ls', [join(images, 'store', `${name}-images`)]).status === 0;
export const imageOf = (target: string) => `localhost/svc-agent-ci/${target}`;
export const targets = ['agent', 'agent-tools'];
export const hasImages = targets.every((target) => podman('image', 'exists', imageOf(target)).status === 0);
