import { createSocket } from 'node:dgram';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { hasImages, imageOf, podman, targets } from './podman.ts';

// The images of the Dockerfile as they are shipped, in containers; `.ci/containers` builds them.

/** The limits are set here, because those of the host cannot always be passed on. */
const ulimits = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1000:1000'];
const place = newFolder(afterAll);
const names: string[] = [];
afterEach(() => {
  for (const name of names.splice(0)) podman('rm', '--force', '--time', '0', name);
});

interface Ports {
  pull: number;
  admin: number;
  statsd: number;
}

const textAt = async (port: number, path: string): Promise<string> =>
  (await fetch(`http://127.0.0.1:${port}${path}`)).text();

const valueIn = (page: string, series: RegExp): number =>
  [...page.matchAll(new RegExp(`^${series.source}[^\\n]* ([0-9.e+]+)$`, 'gm'))].reduce(
    (sum, [, value]) => sum + Number(value),
    0,
  );

/** Sends new names of series until the agent has refused as many as needed. */
async function floodOf(port: number, done: () => Promise<boolean>): Promise<void> {
  const socket = createSocket('udp4');
  let next = 0;
  await until('the limits are full', async () => {
    for (let packet = 0; packet < 50; packet++) {
      const lines = Array.from({ length: 20 }, () => `hostile_${next++}:1|c|#tag:${next}`);
      socket.send(lines.join('\n'), port, '127.0.0.1');
    }
    return done();
  });
  socket.close();
}

describe.skipIf(!hasImages).each(targets)('the image %s', (target) => {
  const start = async (ports: Ports) => {
    const directory = join(place, target);
    mkdirSync(directory, { recursive: true });
    chmodSync(directory, 0o755);
    writeFileSync(
      join(directory, 'agent.yaml'),
      JSON.stringify({
        services: { frontend: { statsd: `127.0.0.1:${ports.statsd}` } },
        metrics: { pullmetrics: { listenAddress: `127.0.0.1:${ports.pull}` } },
        admin: { listenAddress: `127.0.0.1:${ports.admin}` },
      }),
    );
    const name = `svc-agent-ci-${target}-${process.pid}`;
    names.push(name);
    const mounts = [
      '--volume',
      `${directory}:/etc/svc-agent:ro`,
      '--volume',
      `${name}-state:/var/lib/svc-agent`,
    ];
    const rights = ['--read-only', '--cap-drop', 'all', '--security-opt', 'no-new-privileges'];
    const { status, stderr } = podman(
      ...[
        'run',
        '--detach',
        '--name',
        name,
        '--network',
        'host',
        '--memory',
        '256m',
        ...ulimits,
        ...mounts,
        ...rights,
        imageOf(target),
      ],
    );
    expect(status, stderr).toBe(0);
    await until('it is ready', async () => (await fetch(`http://127.0.0.1:${ports.pull}/ready`)).ok);
    return name;
  };

  test('runs without rights, survives full limits and SIGKILL, and stops by itself', async () => {
    const ports = { pull: await freePort(), admin: await freePort(), statsd: await freePort() };
    const name = await start(ports);
    expect(podman('inspect', '--format', '{{.Config.User}}', name).stdout.trim()).toBe('65532:65532');
    expect(podman('healthcheck', 'run', name).status).toBe(0);

    await floodOf(ports.statsd, async () => {
      const page = await textAt(ports.pull, '/metrics?service=agent');
      return valueIn(page, /svc_agent_series_refused_total/) > 20_000;
    });
    expect(JSON.parse(await textAt(ports.pull, '/health'))).toMatchObject({ ok: true });
    const { stdout } = podman(
      'inspect',
      '--format',
      '{{.State.Running}} {{.State.OOMKilled}} {{.RestartCount}}',
      name,
    );
    expect(stdout.trim()).toBe('true false 0');

    podman('kill', '--signal', 'KILL', name);
    expect(podman('wait', name).stdout.trim()).toBe('137');
    expect(podman('start', name).status).toBe(0);
    await until('it is ready again', async () => (await fetch(`http://127.0.0.1:${ports.pull}/ready`)).ok);
    expect(podman('healthcheck', 'run', name).status).toBe(0);

    // The container ends by SIGTERM: SIGKILL after the time would show as 137.
    podman('stop', '--time', '30', name);
    expect(podman('wait', name).stdout.trim()).toBe('0');
    podman('volume', 'rm', '--force', `${name}-state`);
  });
});

test.skipIf(!hasImages)('the small image has no shell, the other has the clients of databases', () => {
  const run = (target: string, ...command: string[]) =>
    podman(
      'run',
      '--rm',
      ...ulimits,
      '--network',
      'none',
      '--entrypoint',
      command[0]!,
      imageOf(target),
      ...command.slice(1),
    );
  expect(run('agent', '/bin/sh', '-c', 'true').status).not.toBe(0);
  expect(run('agent-tools', 'pg_dump', '--version').stdout).toMatch(/PostgreSQL/);
  expect(run('agent-tools', 'mariadb-dump', '--version').stdout).toMatch(/MariaDB/i);
});
