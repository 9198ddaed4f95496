import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { folder } from '../run-folder.ts';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { type Held, hasAlertmanager } from './alertmanager.ts';
import { overWithinMs, startDemo } from './demo.ts';
import { type Running, start } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

const isAlive = (pid: number) => existsSync(`/proc/${pid}`);
const running: Running[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.end();
});

function demoOf(args: readonly string[], env: Record<string, string> = {}) {
  const demo = startDemo(args, env);
  running.push(demo);
  return demo;
}

const alerts = async (alertmanager: string) =>
  (await (await fetch(`${alertmanager}/api/v2/alerts`)).json()) as Held[];

const firing = (alertmanager: string, name: string) =>
  until(`${name} fires in Alertmanager`, async () =>
    (await alerts(alertmanager)).find(({ labels }) => labels.alertname === name),
  );

/** Alerts on a state continue for five minutes (`keep_firing_for`); the nightly run waits for their end. */
const waitsForEnd = bySize({ short: false, long: false, nightly: true });

describe.skipIf(!hasPrometheus || !hasAlertmanager)('svc-agent demo', () => {
  test('breaks the store, until Alertmanager has the alert, until the incident is ended', async () => {
    const demo = demoOf(['--incident-after', '2s']);
    const alertmanager = await demo.shown(/^ {2}Alertmanager +(http:\/\/127\.0\.0\.1:\d+)/m);
    const directory = await demo.shown(/^ {2}files +(\S+)$/m);
    const pids = readFileSync(`/proc/${demo.child.pid}/task/${demo.child.pid}/children`, 'utf8');
    const children = pids.trim().split(' ').map(Number);
    expect(children).toHaveLength(4);
    const status = await (await fetch(`${alertmanager}/api/v2/status`)).json();
    expect((status as { config: { original: string } }).config.original).toContain('inhibit_rules');

    const incident = await demo.shown(/'(http:\S+\/incident)\?kind=/);
    await fetch(`${incident}?kind=backlog`, { method: 'POST' });
    expect(await firing(alertmanager, 'SvcStoreDown')).toMatchObject({
      labels: { cluster: 'demo', severity: 'critical', store: 'main' },
      status: { state: 'active' },
    });
    expect((await firing(alertmanager, 'SvcTaskListUnpolled')).labels).toMatchObject({
      domain: 'orders',
      tasklist: 'order-processing',
    });
    await demo.shown(/incident: (store-down main)$/m);
    await demo.shown(/alert fires: (SvcStoreDown) \(critical\) /);
    const end = await demo.shown(/^ {2}curl -X POST (\S+\/end)$/m);
    await fetch(end, { method: 'POST' });
    await demo.shown(/incident over: (store-down main)$/m);
    if (waitsForEnd) await demo.shown(/alert over: (SvcStoreDown) \(critical, main, \w+\)$/m, overWithinMs);

    expect(await demo.end(), demo.output()).toBe(0);
    expect([...children.filter(isAlive), existsSync(directory)]).toEqual([false]);
  }, 1_200_000);

  test('prints the two commands where nothing is installed, which work as printed', async () => {
    const bin = folder();
    try {
      for (const [name, installed] of [
        ['prometheus', 'prometheus'],
        ['alertmanager', 'prometheus-alertmanager'],
      ] as const) {
        const { stdout } = spawnSync('which', [installed], { encoding: 'utf8' });
        symlinkSync(stdout.trim(), join(bin.path, name));
      }
      const demo = demoOf(['--incident-after', '0s'], { PATH: '/nonexistent' });
      const incident = await demo.shown(/'(http:\S+\/incident)\?kind=/);
      const commands = demo.output().match(/^ {2}(?:prometheus|alertmanager) --.*$/gm) ?? [];
      expect(commands).toHaveLength(2);
      for (const command of commands) {
        running.push(start('/bin/sh', ['-c', `exec ${command}`], { PATH: bin.path }));
      }
      const alertmanager = /(http:\/\/\S+)\/#\/alerts/.exec(demo.output())![1]!;
      await until('Alertmanager is ready', async () => (await fetch(`${alertmanager}/-/ready`)).ok);
      await fetch(`${incident}?kind=fatal`, { method: 'POST' });
      await firing(alertmanager, 'SvcFatalLogEntry');
      await demo.shown(/alert fires: (SvcFatalLogEntry) /);
    } finally {
      for (const one of running.splice(0).reverse()) await one.end();
      bin.remove();
    }
  });
});
