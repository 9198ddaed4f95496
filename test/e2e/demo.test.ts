import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { onlyLong, testOnce } from '../size.ts';
import { pollUntil } from '../until.ts';

// This needs the built program: `npm run build`.
const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

interface Addresses {
  metrics: string;
  end: string;
  admin: string;
  probes: string;
  config: string;
  incident: string;
  directory: string;
  pids: { agent: number; service: number };
}

interface ProbeResult {
  name: string;
  kind: string;
  last?: { ok: boolean; reason?: string };
}

const everyProbe = [
  ...[
    'archive/history',
    'archive/visibility',
    'cluster/dc1',
    'cluster/dc2',
    'domain/orders',
    'domain/payments',
  ],
  ...['health/frontend', 'health/history', 'health/matching', 'health/worker', 'replication/dc1'],
  ...['store/main/persistence', 'store/main/visibility'],
];

let running: ChildProcess | undefined;
let started: Addresses | undefined;

// A test that failed half-way leaves nothing behind either.
afterEach(() => {
  const over = !running || running.exitCode !== null || running.signalCode !== null;
  if (!over) {
    running?.kill('SIGKILL');
    for (const pid of Object.values(started?.pids ?? {})) process.kill(pid, 'SIGKILL');
    if (started) rmSync(started.directory, { recursive: true, force: true });
  }
  running = undefined;
  started = undefined;
});

function startDemo(...args: string[]) {
  // Prometheus is not on the path (demo-alert.nightly.test.ts starts it), and no incident begins by itself.
  const child = spawn(process.execPath, [main, 'demo', '--incident-after', '0s', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: '/nonexistent' },
  });
  running = child;
  let stdout = '';
  let stderr = '';
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const firstLine = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    child.once('close', () => reject(new Error(`ended without a word: ${stderr}`)));
  });
  firstLine.catch(() => {});
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  const ended = new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (status) => resolve({ status, stdout, stderr }));
  });
  const addresses = async () => {
    started = JSON.parse(await firstLine) as Addresses;
    return started;
  };
  return { child, ended, addresses };
}

const alive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

function expectNothingLeft({ directory, pids }: Addresses) {
  expect([alive(pids.agent), alive(pids.service), existsSync(directory)]).toEqual([false, false, false]);
}

/** The sum of the samples of a family on a page; of one role if it is given. */
function sum(page: string, family: string, role = ''): number {
  const samples = page.split('\n').filter((line) => line.startsWith(`${family}{`) && line.includes(role));
  return samples.reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
}

/** The number of whole lines that the service has written, counted in its files independently of the agent. */
function linesIn(directory: string, role: string): number {
  const files = readdirSync(directory).filter((name) => name.startsWith(`${role}.log`));
  return files.reduce((n, file) => n + readFileSync(join(directory, file), 'utf8').split('\n').length - 1, 0);
}

describe('svc-agent demo', () => {
  testOnce(
    'finds everything well, counts every log line, then shows what goes wrong, and ends on SIGINT, with nothing installed',
    async () => {
      const { child, ended, addresses } = startDemo('--json');
      const where = await addresses();
      const { metrics, admin, directory, pids, probes, config, incident, end } = where;
      expect((await fetch(admin)).status).toBe(200);
      const scrape = async () => (await fetch(metrics)).text();
      const probeResults = async () => (await (await fetch(probes)).json()) as ProbeResult[];
      const all = await pollUntil(probeResults, (found) => found.every(({ last }) => last?.ok === true));
      expect(all.map(({ name }) => name).sort()).toEqual(everyProbe);
      const once = spawnSync(process.execPath, [main, 'probe', '-c', config], { encoding: 'utf8' });
      expect([once.status, once.stderr]).toEqual([0, '']);
      const planned = ['maintenance', '-c', config, '--for', '10m', '--reason', 'a new disk'];
      expect(spawnSync(process.execPath, [main, ...planned], { encoding: 'utf8' })).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^maintenance for 10m, until .*: a new disk$/m),
      });

      await pollUntil(scrape, (page) => sum(page, 'svc_log_entries_total') > 100);
      // A stopped service writes nothing more, so that both sides can be counted.
      process.kill(pids.service, 'SIGSTOP');
      for (const role of ['frontend', 'history', 'matching', 'worker']) {
        const written = linesIn(directory, role);
        const ofRole = `svc_service="${role}"`;
        const isCounted = (page: string) => sum(page, 'svc_log_entries_total', ofRole) >= written;
        expect(sum(await pollUntil(scrape, isCounted), 'svc_log_entries_total', ofRole)).toBe(written);
      }
      process.kill(pids.service, 'SIGCONT');

      const strike = async (kind: string, target = '') =>
        expect((await fetch(`${incident}?kind=${kind}${target}`, { method: 'POST' })).status).toBe(200);
      await strike('persistence-errors', '&target=worker');
      await pollUntil(
        scrape,
        (page) => sum(page, 'svc_log_persistence_errors_total', 'svc_service="worker"') > 5,
      );
      expect((await fetch(`${end}?kind=persistence-errors`, { method: 'POST' })).status).toBe(200);
      await strike('failover');
      await strike('store-down');
      const seenDown = async () => ({ page: await scrape(), found: await probeResults() });
      await pollUntil(seenDown, ({ page, found }) => {
        const roles = found.filter(({ kind }) => kind === 'health');
        const blamesStore = roles.every(({ last }) => last?.reason === 'persistence');
        return blamesStore && sum(page, 'svc_store_up') === 0 && sum(page, 'svc_role_up') === 0;
      });
      expect(await (await fetch(`${end}?kind=store-down`, { method: 'POST' })).text()).toBe(
        'ended: store-down main\n',
      );
      const failovers = (page: string) => sum(page, 'svc_domain_failovers_total', 'domain="orders"');
      const isBack = (page: string) => sum(page, 'svc_store_up') === 2 && sum(page, 'svc_role_up') === 4;
      const back = await pollUntil(scrape, (page) => isBack(page) && failovers(page) > 0);
      expect(failovers(back)).toBe(1);
      expect(back).toMatch(/^svc_domain_active_cluster\{(?=.*domain="orders").*active_cluster="dc2".*\} 1$/m);
      child.kill('SIGINT');
      expect(await ended).toMatchObject({ status: 0, stderr: '' });
      expectNothingLeft(where);
    },
  );

  onlyLong(it)('says what to open and ends by itself after --for', async () => {
    const { ended } = startDemo('--for', '2s');
    const { status, stdout } = await ended;
    expect(status).toBe(0);
    const metrics = /^ {2}metrics +(http:\S+)$/m.exec(stdout)?.[1];
    expect(metrics).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    expect(stdout).toContain(`curl -s ${metrics}`);
    expect(stdout).toMatch(/^ {2}probes +http:\/\/127\.0\.0\.1:\d+\/probes$/m);
    expect(stdout).toMatch(/^ {2}node \S*main\.js probe -c \S+\/agent\.yaml$/m);
    expect(stdout).toContain('/incident?kind=persistence-errors');
    expect(stdout).toMatch(/^ {2}curl -X POST http:\S+\/end$/m);
    expect(stdout).toContain('No incident begins by itself.');
  });

  onlyLong(it)('says which program died and exits with 1', async () => {
    const { ended, addresses } = startDemo('--json');
    const where = await addresses();
    process.kill(where.pids.agent, 'SIGKILL');
    const { status, stderr } = await ended;
    expect(status).toBe(1);
    expect(stderr).toContain('svc-agent demo: the agent ended by itself (signal SIGKILL)');
    expectNothingLeft(where);
  });

  testOnce.each([
    ['--for', 'soon', '--for: not a duration, got "soon"'],
    ['--for', '2d', '--for: too short or too long, got "2d"'],
    ['--incident-after', 'never', '--incident-after: not a duration, got "never"'],
    ['--forever', '', 'unknown option, got "--forever"'],
  ])('refuses %s %s', async (option, value, message) => {
    const { status, stderr } = await startDemo(option, ...(value ? [value] : [])).ended;
    expect(status).toBe(2);
    expect(stderr).toContain(message);
  });
});
