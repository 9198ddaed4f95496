import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { type Held, hasAlertmanager } from './alertmanager.ts';
import { folder, mainFile, type Running, start } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

const isAlive = (pid: number) => existsSync(`/proc/${pid}`);
const running: Running[] = [];
afterEach(async () => {
  for (const one of running.splice(0)) await one.end();
});

function startDemo(args: readonly string[], env: Record<string, string> = {}) {
  const demo = start(process.execPath, [mainFile, 'demo', ...args], env);
  running.push(demo);
  /** What the text says stands behind a word, once it says so. */
  const shown = (pattern: RegExp, withinMs?: number) =>
    until(`the demo prints ${pattern}`, () => pattern.exec(demo.output())?.[1], { withinMs });
  return { ...demo, shown };
}

const alerts = async (alertmanager: string) =>
  (await (await fetch(`${alertmanager}/api/v2/alerts`)).json()) as Held[];

const firing = (alertmanager: string, name: string) =>
  until(`${name} fires in Alertmanager`, async () =>
    (await alerts(alertmanager)).find(({ labels }) => labels.alertname === name),
  );

/** The shell blocks of the tutorial, in order; the first one starts the demo. */
const tutorial = [
  ...readFileSync(new URL('../../docs/tutorial.md', import.meta.url), 'utf8').matchAll(
    /```sh\n([\s\S]*?)```/g,
  ),
].map(([, text = '']) => text);

/** Alerts on a state go on for five minutes (`keep_firing_for`): the nightly run waits for their end. */
const waitsForEnd = bySize({ short: false, long: false, nightly: true });
const overWithinMs = 600_000;
/** Blocks start programs: to run them again at once would only take their time from the demo. */
const patience = { everyMs: 500 };

/** Runs a block of the tutorial as it is printed, but for ports that were taken when the demo started. */
function playBlock(index: number, ports: Readonly<Record<number, string>>): string {
  const text = tutorial[index]!.replaceAll('node dist/main.js', `${process.execPath} ${mainFile}`).replaceAll(
    /127\.0\.0\.1:(\d+)/g,
    (usual, port) => ports[port] ?? usual,
  );
  const { status, stdout, stderr } = spawnSync('bash', ['-c', text], { encoding: 'utf8', timeout: 60_000 });
  if (status === null || status > 1) throw new Error(`${text}: ${status}: ${stderr}`);
  return stdout;
}

describe.skipIf(!hasPrometheus || !hasAlertmanager)('svc-agent demo', () => {
  test('plays the tutorial as it is printed, until the alert is over', async () => {
    const demo = startDemo(['--incident-after', '0s']);
    const address = (what: string) => demo.shown(new RegExp(`^ {2}${what} +http://([^/\\s]+)`, 'm'));
    const end = await demo.shown(/^ {2}curl -X POST http:\/\/([^/\s]+)\/end$/m);
    const ports = {
      9464: await address('metrics'),
      9465: await address('status page'),
      9090: await address('Prometheus'),
      9093: await address('Alertmanager'),
      7930: end,
    };
    expect(tutorial[0]).toBe('npm start\n');
    await until('status says that all is well', () => /well/.test(playBlock(1, ports)), patience);
    await until(
      'the pages have numbers',
      () => {
        const text = playBlock(2, ports);
        return /^svc_log_entries_total/m.test(text) && /^svc_frontend_client_requests/m.test(text);
      },
      patience,
    );
    playBlock(3, ports);
    await until(
      'status and probe say what is down',
      () => {
        const text = playBlock(4, ports);
        return /main\/persistence/.test(text) && /"reason": ?"refused"/.test(text);
      },
      patience,
    );
    await until(
      'the alert is in Alertmanager',
      () => playBlock(5, ports).trim() === '"alertname":"SvcStoreDown"',
      patience,
    );
    expect(playBlock(7, ports).trim()).toBe('"alertname":"SvcStoreDown"');
    playBlock(6, ports);
    await until('status says that all is well again', () => /well/.test(playBlock(1, ports)), patience);
    if (!waitsForEnd) return;
    const isOver = () => !playBlock(5, ports).includes('SvcStoreDown');
    await until('the alert is over', isOver, { everyMs: 2000, withinMs: overWithinMs });
    expect(playBlock(7, ports)).toBe('');
  }, 1_200_000);

  test('breaks the store, until Alertmanager has the alert, until the incident is ended', async () => {
    const demo = startDemo(['--incident-after', '2s']);
    const alertmanager = await demo.shown(/^ {2}Alertmanager +(http:\/\/127\.0\.0\.1:\d+)/m);
    const directory = await demo.shown(/^ {2}files +(\S+)$/m);
    const pids = readFileSync(`/proc/${demo.child.pid}/task/${demo.child.pid}/children`, 'utf8');
    const children = pids.trim().split(' ').map(Number);
    expect(children).toHaveLength(4);
    const status = await (await fetch(`${alertmanager}/api/v2/status`)).json();
    expect((status as { config: { original: string } }).config.original).toContain('inhibit_rules');

    expect(await firing(alertmanager, 'SvcStoreDown')).toMatchObject({
      labels: { cluster: 'demo', severity: 'critical', store: 'main' },
      status: { state: 'active' },
    });
    await demo.shown(/incident: (store-down main)$/m);
    await demo.shown(/alert fires: (SvcStoreDown) \(critical\) /);
    const end = await demo.shown(/^ {2}curl -X POST (\S+\/end)$/m);
    await fetch(end, { method: 'POST' });
    if (waitsForEnd) await demo.shown(/alert over: (SvcStoreDown) \(critical\)$/m, overWithinMs);

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
      const demo = startDemo(['--incident-after', '0s'], { PATH: '/nonexistent' });
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
