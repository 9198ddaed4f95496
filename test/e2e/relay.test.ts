import { createSocket } from 'node:dgram';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { listening } from '../ports.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { type Example, startExample, wholePage } from './example.ts';
import { command, type RunningAgent, startAgent } from './process.ts';
import { hasPrometheus, startPrometheus } from './prometheus.ts';

const scraped = (role: string, { roles }: Example) =>
  `  ${role}: {scrape: {url: '${roles[role]!.metrics}', interval: 1s, timeout: 900ms}}\n`;

async function agentBeside(
  directory: string,
  services: string,
  metrics = 'metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\n',
): Promise<RunningAgent> {
  const file = join(directory, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${join(directory, 'state')}\n${metrics}admin: {listenAddress: 127.0.0.1:0}\nservices:\n${services}`,
  );
  const agent = await startAgent(file);
  atTestEnd(() => agent.end());
  return agent;
}

async function exampleIn(directory: string): Promise<Example> {
  mkdirSync(join(directory, 'service'));
  const example = await startExample(join(directory, 'service'));
  atTestEnd(() => example.end());
  return example;
}

type Samples = Map<string, number>;

/** The samples of a page by name and sorted labels, without the labels that an agent adds. */
function samplesOf(page: string): Samples {
  const samples: Samples = new Map();
  for (const line of page.split('\n')) {
    const parts = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!parts) continue;
    const labels = [...(parts[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
      ([, name, value]) => `${name}=${value}`,
    );
    samples.set(
      `${parts[1]}{${labels.filter((label) => !label.startsWith('svc_service=')).sort()}}`,
      Number(parts[3]),
    );
  }
  return samples;
}

const pageOf = async (url: string) => (await fetch(url)).text();

describe('a role’s page through the agent', () => {
  test('has every series of the role; totals lie between a page taken before and one taken after', async () => {
    const directory = newFolder();
    const example = await exampleIn(directory);
    await wholePage(example);
    const agent = await agentBeside(directory, scraped('history', example));
    const { before, through, after } = await until('three pages of the same series', async () => {
      const first = samplesOf(await pageOf(example.roles.history!.metrics));
      const ends = new Set<number>();
      const takenMs = Date.now();
      // The agent returns a page that is younger than a second unchanged. A scrape that ends after the first page was written may
      // have begun before it; the next one did not.
      const second = await until('a page that was taken later', async () => {
        const { scrapes } = JSON.parse(await pageOf(`http://${agent.address('admin')}/api/status`));
        const page = await pageOf(`http://${agent.address('metrics')}/metrics?service=history`);
        if (scrapes[0].lastTakenMs > takenMs) ends.add(scrapes[0].lastTakenMs);
        return ends.size > 1 && samplesOf(page);
      });
      const third = samplesOf(await pageOf(example.roles.history!.metrics));
      const relayed = [...second.keys()].filter((key) => key !== 'up{}').sort();
      const isSame = isDeepStrictEqual(relayed, [...third.keys()].sort());
      return isSame ? { before: first, through: second, after: third } : undefined;
    });
    const totals = [...through].filter(([key]) => /_(requests|count|bucket)\{/.test(key));
    expect(totals.length).toBeGreaterThan(20);
    const outside = totals.filter(([key, value]) => value < before.get(key)! || value > after.get(key)!);
    expect(outside).toEqual([]);
  });

  test.skipIf(!hasPrometheus)(
    'up of a role’s job falls to 0 when the role is killed, and the literal condition fires',
    async () => {
      const directory = newFolder();
      const example = await exampleIn(directory);
      const agent = await agentBeside(
        directory,
        ['frontend', 'history'].map((role) => scraped(role, example)).join(''),
      );
      const jobs = ['frontend', 'history', 'agent'].map(
        (service) => `  - job_name: ${service === 'agent' ? 'svc-agent' : service}
    params: {service: [${service}]}
    static_configs: [{targets: ['${agent.address('metrics')}']}]
`,
      );
      const rules = join(directory, 'rules.yml');
      writeFileSync(
        rules,
        'groups: [{name: spec, interval: 200ms, rules: [{alert: SvcServiceDown, expr: \'up{job="frontend"} == 0\'}]}]\n',
      );
      const prometheus = await startPrometheus(directory, {}, `${jobs.join('')}rule_files: [${rules}]\n`);
      atTestEnd(() => prometheus.end());
      await until('all jobs are up', async () => {
        const rows = await prometheus.query('up == 1');
        return rows.length === 3;
      });
      await example.end('SIGKILL');
      await until('the literal condition fires', async () => {
        const rows = await prometheus.query('ALERTS{alertname="SvcServiceDown",alertstate="firing"}');
        return rows.length === 1;
      });
      // Each job is scraped at its own time: frontend's fall says nothing about history's yet.
      await until('each job says what its role is', async () => {
        const rows = await prometheus.query('up');
        const up = Object.fromEntries(rows.map(({ metric, value }) => [metric.job, value]));
        return isDeepStrictEqual(up, { frontend: 0, history: 0, 'svc-agent': 1 });
      });
      expect((await fetch(`http://${agent.address('metrics')}/metrics`)).status).toBe(200);
    },
  );

  test('a scrape without a timeout header fetches: the role’s death shows at once, not after the interval', async () => {
    const directory = newFolder();
    const role = createServer((_request, response) => response.end('# TYPE jobs counter\njobs 1\n'));
    const { port } = await listening(role);
    const agent = await agentBeside(
      directory,
      `  history: {scrape: {url: 'http://127.0.0.1:${port}/metrics', interval: 60s, timeout: 2s}}\n`,
    );
    const url = `http://${agent.address('metrics')}/metrics?service=history`;
    expect((await fetch(url)).status).toBe(200);
    role.closeAllConnections();
    role.close();
    await until('the role is down', async () => (await fetch(url)).status === 503);
  });

  test('an unknown service is 404, and no series is in two of the pages', async () => {
    const directory = newFolder();
    const example = await exampleIn(directory);
    const agent = await agentBeside(
      directory,
      ['frontend', 'worker'].map((role) => scraped(role, example)).join(''),
    );
    const url = `http://${agent.address('metrics')}/metrics`;
    expect((await fetch(`${url}?service=nobody`)).status).toBe(404);
    const names = async (service: string) =>
      (await pageOf(`${url}?service=${service}`))
        .split('\n')
        .filter((line) => line && !line.startsWith('#'))
        .map((line) => line.replace(/ \S+$/, ''));
    // On a busy machine a scrape takes longer than its 900 ms, and then the page of the role has only `up`.
    const all = await until('all three pages have their series', async () => {
      const pages = await Promise.all(['frontend', 'worker', 'agent'].map(names));
      return pages.every(({ length }) => length > 10) && pages.flat();
    });
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('datagrams', () => {
  test('counters, gauges and timers come out by pull, under a reload too', async () => {
    const directory = newFolder();
    const agent = await agentBeside(directory, '  matching: {statsd: 127.0.0.1:0}\n');
    const status = (await (await fetch(`http://${agent.address('admin')}/api/status`)).json()) as {
      statsd: { service: string; addresses: { listen: string } }[];
    };
    const [, host, port] = /^(.*):(\d+)$/.exec(status.statsd[0]!.addresses.listen)!;
    const socket = createSocket('udp4');
    for (let n = 0; n < 50; n++)
      socket.send(
        'svc_matching_tasks_added:2|c|#domain:orders\nsvc_matching_tasklist_backlog:7|g|#tasklist:main\nsvc_history_cache_latency:20|ms',
        Number(port),
        host,
      );
    const page = () => pageOf(`http://${agent.address('metrics')}/metrics?service=matching`);
    await until(
      'all datagrams are counted',
      async () =>
        (await page()).includes('svc_matching_tasks_added{domain="orders",svc_service="matching"} 100') ||
        undefined,
    );
    socket.close();
    const text = await page();
    expect(text).toContain('svc_matching_tasklist_backlog{svc_service="matching",tasklist="main"} 7');
    expect(text).toContain('svc_history_cache_latency_bucket{svc_service="matching",le="0.05"} 50');
    expect(text).toContain('svc_history_cache_latency_count{svc_service="matching"} 50');
  });
});

describe('by push', () => {
  test('the deltas that arrive add up to what was counted', async () => {
    const directory = newFolder();
    const receiver = createSocket('udp4');
    await new Promise<void>((resolve) => receiver.bind(0, '127.0.0.1', resolve));
    const sums = new Map<string, number>();
    let longest = 0;
    receiver.on('message', (bytes) => {
      longest = Math.max(longest, bytes.length);
      for (const line of bytes.toString().split('\n')) {
        const counted = /^([^:]+):(-?[\d.]+)\|c(.*)$/.exec(line);
        if (counted)
          sums.set(
            `${counted[1]}${counted[3]}`,
            (sums.get(`${counted[1]}${counted[3]}`) ?? 0) + Number(counted[2]),
          );
      }
    });
    const { port } = receiver.address();
    const log = join(directory, 'worker.log');
    writeFileSync(log, '');
    await agentBeside(
      directory,
      `  worker: {logs: {paths: [${log}], startAt: beginning}}\n`,
      `instance: host-1\nmetrics: {reportingInterval: 200ms, pushmetrics: {hostPort: '127.0.0.1:${port}', prefix: svc, flushBytes: 512, tagFormat: dogstatsd}}\n`,
    );
    const key = () =>
      [...sums.keys()].find((name) => name.includes('log_entries_total') && name.includes('level:info'));
    for (let round = 0; round < 5; round++) {
      writeFileSync(log, `${JSON.stringify({ level: 'info', msg: 'x', logger: 'worker' })}\n`.repeat(200), {
        flag: 'a',
      });
      const sent = 200 * (round + 1);
      await until(`${sent} entries arrived`, () => sums.get(key() ?? '') === sent);
    }
    expect(key()).toContain('instance:host-1');
    expect(longest).toBeLessThanOrEqual(512);
    receiver.close();
  });
});

describe('svc-agent check --live', () => {
  test('lists what a role does not send and what nobody maps, and fails on a page that is not there', async () => {
    const directory = newFolder();
    const example = await exampleIn(directory);
    await wholePage(example);
    const file = join(directory, 'agent.yaml');
    writeFileSync(file, `stateDirectory: ${directory}/state\nservices:\n${scraped('history', example)}`);
    const found = command(['check', '-c', file, '--live', '--json']);
    const { live } = JSON.parse(found.stdout) as {
      live: { service: string; missing: string[]; unmapped: string[] }[];
    };
    expect(found.status).toBe(0);
    expect(live).toMatchObject([{ service: 'history', vocabulary: 'svc', missing: [], unmapped: [] }]);
    // The worker's page lacks what only the history role sends.
    writeFileSync(
      file,
      `stateDirectory: ${directory}/state\nservices:\n${scraped('worker', example).replace('worker:', 'history:')}`,
    );
    const other = JSON.parse(command(['check', '-c', file, '--live', '--json']).stdout) as {
      live: { missing: string[] }[];
    };
    expect(other.live[0]!.missing).toContain('svc_history_cache_requests');
    await example.end();
    const gone = command(['check', '-c', file, '--live']);
    expect(gone.status).toBe(1);
    expect(gone.stdout).toContain('FAILED');
  });
});
