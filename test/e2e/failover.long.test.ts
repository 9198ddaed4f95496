import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { askFrontend } from '../../examples/cli/ask.ts';
import type { DescribedDomain } from '../../examples/service/clusters/domains.ts';
import { paths } from '../../examples/service/clusters/frontend.ts';
import { newFolder } from '../folder.ts';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { type Example, startExample } from './example.ts';
import { commandHere, mainFile, start } from './process.ts';

// datacenter-failure and failback with the two clusters of the example service, through the built program.

const client = fileURLToPath(new URL('../../dist/example-cli.js', import.meta.url));

/** Both procedures write 14 lines of their journal. */
const killedAfterLines = bySize({
  short: [],
  long: [7, 10],
  nightly: Array.from({ length: 14 }, (_, index) => index + 1),
});

describe('failover and failback', () => {
  let example: Example;
  const place = newFolder(afterAll);
  const file = join(place, 'agent.yaml');
  const state = join(place, 'state');
  const repointed = join(place, 'repointed');

  const configure = (current = 'dc1') =>
    writeFileSync(
      file,
      `stateDirectory: ${state}
${
  current === 'dc1'
    ? `roles: [frontend, history]
services:
  frontend: {health: '${example.roles.frontend!.health}'}
  history: {health: '${example.roles.history!.health}', scrape: '${example.roles.history!.metrics}'}
`
    : ''
}clusterGroupMetadata:
  failoverVersionIncrement: 10
  primaryClusterName: dc1
  currentClusterName: ${current}
  clusterGroup:
    dc1: {enabled: true, initialFailoverVersion: 1, rpcAddress: '${example.clusters.dc1}', rpcTransport: grpc}
    dc2: {enabled: true, initialFailoverVersion: 2, rpcAddress: '${example.clusters.dc2}', rpcTransport: grpc}
    dc3: {enabled: false, initialFailoverVersion: 3}
domains:
  watch: [orders]
  describe:
    command: [${process.execPath}, ${client}, --address, '{address}', --domain, '{domain}', domain, describe, --print_json]
recovery:
  allowExecute: true
  commands:
    repointTraffic: [sh, -c, 'echo {domain} {cluster} >> ${repointed}']
`,
    );
  const recover = (...args: string[]) => {
    const running = start(process.execPath, [mainFile, 'recover', ...args, '-c', file]);
    running.child.stdin?.end();
    return running;
  };
  /** Runs a procedure to its end without anybody to ask. */
  const execute = async (procedure: string, domain: string, to: string, ...more: string[]) => {
    const running = recover(
      ...[procedure, '--domain', domain, '--to', to, '--execute', '--yes', '--confirm', domain],
      ...more,
    );
    const status = await running.ended;
    return { status, output: running.output() };
  };
  /** Like `execute` in this process, for a run that is refused before a command. */
  const executeHere = async (procedure: string, domain: string, to: string, ...more: string[]) => {
    const { status, stdout, stderr } = await commandHere([
      ...['recover', procedure, '--domain', domain, '--to', to, '--execute', '--yes', '--confirm', domain],
      ...[...more, '-c', file],
    ]);
    return { status, output: stdout + stderr };
  };
  const update = (to: string) =>
    askFrontend(example.clusters.dc2!, paths.update, { name: 'orders', activeCluster: to });
  const describeAt = (address: string, name = 'orders') =>
    askFrontend<DescribedDomain>(address, paths.describe, { name });
  const activeCluster = async (domain = 'orders') =>
    (await describeAt(example.clusters.dc2!, domain)).replicationConfiguration.activeClusterName;
  const journal = (procedure: string, domain = 'orders') =>
    readFileSync(join(state, 'recovery-runs', `${procedure}.${domain}.steps.jsonl`), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const answers = (address: string) => () =>
    describeAt(address).then(
      () => true,
      () => false,
    );
  const isLost = (address: string) => async () => !(await answers(address)());
  const lose = async (cluster: 'dc1' | 'dc2') => {
    await example.incident('cluster-down', cluster);
    await until(`${cluster} is lost`, isLost(example.clusters[cluster]!));
  };
  const recovered = async () => {
    await example.endIncident('cluster-down');
    for (const address of Object.values(example.clusters)) await until('a cluster answers', answers(address));
  };

  beforeAll(async () => {
    example = await startExample(join(place, 'service'));
    await until(
      'the roles are healthy',
      async () => ((await (await fetch(example.roles.history!.health)).json()) as { ok: boolean }).ok,
    );
  });
  beforeEach(async () => {
    await example.endIncident('cluster-down');
    await example.endIncident('replication-behind');
    await recovered();
    await update('dc1');
    rmSync(state, { recursive: true, force: true });
    rmSync(repointed, { force: true });
    configure();
  });
  afterAll(() => example?.end());

  test('a domain fails over when its active cluster is lost, and back when it has recovered', async () => {
    await lose('dc1');
    const over = await execute('datacenter-failure', 'orders', 'dc2');
    expect(over, over.output).toMatchObject({ status: 0 });
    expect(await activeCluster()).toBe('dc2');
    expect(readFileSync(repointed, 'utf8')).toBe('orders dc2\n');
    expect(over.output).toMatch(/Not proved: dc2 does not see the active cluster either/);
    expect(
      journal('datacenter-failure').map(({ event, step }) => [event, step ?? ''].join(' ').trim()),
    ).toEqual([
      'started',
      ...['step_started confirm', 'step_done confirm'],
      ...[
        'step_started update-domain',
        'command_started update-domain',
        'command_ended update-domain',
        'step_done update-domain',
      ],
      ...[
        'step_started repoint-traffic',
        'command_started repoint-traffic',
        'command_ended repoint-traffic',
        'step_done repoint-traffic',
      ],
      ...['step_started watch-replication', 'step_done watch-replication'],
      'done',
    ]);
    await recovered();
    const back = await execute('failback', 'orders', 'dc1');
    expect(back, back.output).toMatchObject({ status: 0 });
    expect(await activeCluster()).toBe('dc1');
    expect(readFileSync(repointed, 'utf8')).toBe('orders dc2\norders dc1\n');
  });

  describe('refuses, and changes nothing,', () => {
    test('a failover while the active cluster answers; a reason overrides it and is recorded', async () => {
      const { status, output } = await executeHere('datacenter-failure', 'orders', 'dc2');
      expect({ status, output }).toMatchObject({
        status: 1,
        output: expect.stringContaining('dc1 still answers'),
      });
      expect(output).toContain('--force REASON overrides this');
      expect(await activeCluster()).toBe('dc1');
      const forced = await execute('datacenter-failure', 'orders', 'dc2', '--force', 'a drill');
      expect(forced, forced.output).toMatchObject({ status: 0 });
      expect(await activeCluster()).toBe('dc2');
      expect(journal('datacenter-failure')).toContainEqual(
        expect.objectContaining({ event: 'forced', check: 'active_cluster_down', reason: 'a drill' }),
      );
    });

    test('a failover to a cluster that is lost', async () => {
      await lose('dc2');
      const { status, output } = await executeHere(
        'datacenter-failure',
        'orders',
        'dc2',
        '--force',
        'try it',
      );
      // The reason overrides the checks, but the client's own failure still stops the run.
      expect({ status, output }).toMatchObject({
        status: 1,
        output: expect.stringMatching(/FAILED\s+dc2 answers/),
      });
      const refused = await executeHere('datacenter-failure', 'orders', 'dc2', '--restart');
      expect(refused).toMatchObject({ status: 1, output: expect.stringContaining('dc1 still answers') });
      await recovered();
      expect(await activeCluster()).toBe('dc1');
    });

    test('a failback while replication is behind, and one to a cluster that is lost', async () => {
      await update('dc2');
      await example.incident('replication-behind', 'dc1');
      await until('replication is behind', async () =>
        /svc_replication_latency\{[^}]*target_cluster="dc1"[^}]*\} 900/.test(
          await (await fetch(example.roles.history!.metrics)).text(),
        ),
      );
      const behind = await executeHere('failback', 'orders', 'dc1');
      expect(behind).toMatchObject({ status: 1, output: expect.stringContaining('900 s behind') });
      await example.endIncident('replication-behind');
      await lose('dc1');
      const lost = await executeHere('failback', 'orders', 'dc1', '--restart');
      expect(lost).toMatchObject({ status: 1, output: expect.stringMatching(/FAILED\s+dc1 answers/) });
      await recovered();
      expect(await activeCluster()).toBe('dc2');
      const back = await execute('failback', 'orders', 'dc1');
      expect(back, back.output).toMatchObject({ status: 0 });
    });
  });

  test('seen from the standby itself, nothing is left unproved; with --json stdout is one object', async () => {
    configure('dc2');
    await lose('dc1');
    const running = recover(
      ...['datacenter-failure', '--domain', 'orders', '--to', 'dc2', '--execute', '--yes'],
      ...['--confirm', 'orders', '--json'],
    );
    let stdout = '';
    running.child.stdout!.on('data', (text) => (stdout += text));
    expect(await running.ended, running.output()).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, notProved: [], subject: { to: 'dc2' } });
    await recovered();
  });

  test.each([
    ['datacenter-failure', 'dc2', ['confirm', 'update-domain', 'repoint-traffic', 'watch-replication']],
    ['failback', 'dc1', ['confirm', 'caught-up', 'update-domain', 'repoint-traffic']],
  ] as const)(
    'a %s that is killed after a line of its journal resumes, says what is missing, and does each step once',
    async (procedure, to, steps) => {
      const events = () => {
        try {
          return journal(procedure);
        } catch {
          return [];
        }
      };
      for (const killedAfter of killedAfterLines) {
        rmSync(state, { recursive: true, force: true });
        await recovered();
        await update(procedure === 'failback' ? 'dc2' : 'dc1');
        if (procedure === 'datacenter-failure') await lose('dc1');
        const args = ['--domain', 'orders', '--to', to, '--execute', '--yes', '--confirm', 'orders'];
        const first = recover(procedure, ...args);
        await until(
          `line ${killedAfter}`,
          () => events().length >= killedAfter || first.child.exitCode !== null,
        );
        await first.end('SIGKILL');
        const before = events();
        if (before.at(-1)?.event === 'done') continue;
        // The next run waits for a command that outlived its run.
        const { status, output } = await until('the run goes on', async () => {
          const again = await execute(procedure, 'orders', to);
          return again.output.includes('is still running') ? undefined : again;
        });
        expect(status, `${killedAfter}: ${output}`).toBe(0);
        const isDone = (step: string) =>
          before.some((line) => line.event === 'step_done' && line.step === step);
        if (before.some(({ event }) => event === 'command_started') && !isDone('repoint-traffic'))
          expect(output).toContain(`Clients and workers are not repointed to ${to}.`);
        expect(await activeCluster()).toBe(to);
        expect(events().filter(({ event }) => event === 'started')).toHaveLength(1);
        const done = events().filter(({ event }) => event === 'step_done');
        expect(done.map(({ step }) => step)).toEqual(steps);
      }
      await recovered();
    },
  );

  test('a command that outlives its run is not run beside itself', async () => {
    configure('dc2');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(/repointTraffic: .*/, 'repointTraffic: [sleep, "600.25"]'),
    );
    await lose('dc1');
    const args = ['--domain', 'orders', '--to', 'dc2', '--execute', '--yes', '--confirm', 'orders'];
    const first = recover('datacenter-failure', ...args);
    await until('the command runs', () => first.output().includes('$ sleep 600.25'));
    const record = join(state, 'recovery-runs', 'domain.orders.lock', 'command.json');
    await until('it is on record', () => readFileSync(record, 'utf8').includes('600.25'));
    const second = await execute('datacenter-failure', 'orders', 'dc2');
    expect(second.status).not.toBe(0);
    expect(second.output).toMatch(
      /a run of datacenter-failure \(pid \d+, since [^)]*\) is under way for orders/,
    );
    // The output of the run stays open as long as the command that outlives it.
    const gone = once(first.child, 'exit');
    first.child.kill('SIGKILL');
    await gone;
    const beside = await execute('datacenter-failure', 'orders', 'dc2');
    expect(beside).toMatchObject({
      status: 1,
      output: expect.stringMatching(/is still running \(pid \d+\): sleep 600.25/),
    });
    process.kill(Number(/pid (\d+)/.exec(beside.output)?.[1]));
    await until('its end', () => !existsSync(`/proc/${/pid (\d+)/.exec(beside.output)?.[1]}`));
    writeFileSync(file, readFileSync(file, 'utf8').replace('"600.25"', '"0"'));
    const after = await execute('datacenter-failure', 'orders', 'dc2');
    expect(after, after.output).toMatchObject({ status: 0 });
    await recovered();
  });
});
