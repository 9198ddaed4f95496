/**
 * Runs many agents on one machine, each beside a role with a small page. Every agent reports by remote write to one
 * VictoriaMetrics, and one Prometheus with the shipped rules scrapes it. Prints the CPU time and memory of an agent, how many
 * samples arrive, how long the rules take, and what was refused or lost. `npm run bench -- fleet [AGENTS] [SECONDS] [SERIES]`,
 * default 60 agents, 60 s after all have started, 500 series each.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { numberAt } from './arguments.ts';
import { hasCommand, pause, usageOf } from './process.ts';

const agents = numberAt(0, 'AGENTS', 60);
const seconds = numberAt(1, 'SECONDS', 60);
const series = numberAt(2, 'SERIES', 500);
const root = process.env.SVC_AGENT_ROOT ?? '.';
const flags = (process.env.AGENT_FLAGS ?? '').split(' ').filter(Boolean);
const place = mkdtempSync(join(tmpdir(), 'svc-agent-fleet-'));
const started: ChildProcess[] = [];

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

function launch(command: string, args: readonly string[]): ChildProcess {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  started.push(child);
  return child;
}

async function answers(url: string): Promise<void> {
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await pause(200);
  }
}

/** The page of every role: operations with counters that grow. */
async function servePage(): Promise<string> {
  let round = 0;
  const server = createServer((_request, response) => {
    round += 1;
    const lines = Array.from(
      { length: series },
      (_, n) => `persistence_requests{operation="Operation${n % 50}",domain="domain-${n}"} ${n + round}\n`,
    );
    response.end(`# TYPE persistence_requests counter\n${lines.join('')}`);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;
}

interface Agent {
  child: ChildProcess;
  address: string;
}

async function startAgent(n: number, page: string, store: string): Promise<Agent> {
  const directory = join(place, `agent-${n}`);
  mkdirSync(directory);
  const config = join(directory, 'agent.yaml');
  const admin = `127.0.0.1:${await freePort()}`;
  writeFileSync(
    config,
    `stateDirectory: ${join(directory, 'state')}
instance: host-${n}
metrics:
  reportingInterval: 15s
  tags: {cluster: fleet}
  hostedmetrics: {protocol: remotewrite, endpoint: 'http://${store}/api/v1/write'}
admin: {listenAddress: ${admin}}
services:
  history: {scrape: {url: '${page}', interval: 15s}}
`,
  );
  const child = launch(process.execPath, [...flags, join(root, 'dist', 'main.js'), 'run', '-c', config]);
  child.stderr!.resume();
  await answers(`http://${admin}/ready`);
  return { child, address: admin };
}

async function startPrometheus(targets: readonly string[]): Promise<{ child: ChildProcess; url: string }> {
  const config = join(place, 'prometheus.yml');
  const rules = ['recommended', 'recording'].map((name) => resolve(root, 'rules', `${name}.rules.yml`));
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '15s', evaluation_interval: '15s' },
      rule_files: rules,
      scrape_configs: [{ job_name: 'svc-agent', static_configs: [{ targets }] }],
    }),
  );
  const address = `127.0.0.1:${await freePort()}`;
  const child = launch('prometheus', [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(place, 'prometheus')}`,
    `--web.listen-address=${address}`,
  ]);
  child.stderr!.resume();
  await answers(`http://${address}/-/ready`);
  return { child, url: `http://${address}` };
}

/** The value of an expression over all series that it yields; 0 if there is none. */
async function sumAt(url: string, expression: string): Promise<number> {
  const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
  const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
  return data.result.reduce((sum, { value }) => sum + Number(value[1]), 0);
}

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!;

for (const name of ['victoria-metrics', 'prometheus']) {
  if (hasCommand(name)) continue;
  process.stdout.write(`${name} is not installed\n`);
  process.exit(1);
}
try {
  const store = `127.0.0.1:${await freePort()}`;
  const data = join(place, 'victoria-metrics');
  const victoria = launch('victoria-metrics', [`-storageDataPath=${data}`, `-httpListenAddr=${store}`]);
  victoria.stderr!.resume();
  await answers(`http://${store}/health`);
  const page = await servePage();
  const fleet: Agent[] = [];
  for (let n = 0; n < agents; n++) fleet.push(await startAgent(n, page, store));
  const prometheus = await startPrometheus(fleet.map(({ address }) => address));
  const all = [...fleet.map(({ child }) => child), victoria, prometheus.child];
  // After two intervals every series is known to both.
  await pause(30_000);
  const before = all.map(({ pid }) => usageOf(pid!).cpuSeconds);
  const rows = async () =>
    Number(
      /^vm_rows_inserted_total\{type="promremotewrite"\} (\d+)$/m.exec(
        await (await fetch(`http://${store}/metrics`)).text(),
      )?.[1] ?? 0,
    );
  const rowsBefore = await rows();
  await pause(seconds * 1000);
  const usages = all.map(({ pid }) => usageOf(pid!));
  const cores = usages.map(({ cpuSeconds }, n) => (100 * (cpuSeconds - before[n]!)) / seconds);
  const rowsPerSecond = ((await rows()) - rowsBefore) / seconds;
  const own = usages.slice(0, agents);
  const print = (name: string, text: string) => process.stdout.write(`${name.padEnd(34)}${text}\n`);
  const takes = (n: number) =>
    `resident ${usages[n]!.residentMiB.toFixed(0)} MiB, ${cores[n]!.toFixed(2)} % of a core`;
  print(
    'an agent',
    `resident ${median(own.map(({ residentMiB }) => residentMiB)).toFixed(0)} MiB (private ${median(own.map(({ anonymousMiB }) => anonymousMiB)).toFixed(0)}), ${median(cores.slice(0, agents)).toFixed(2)} % of a core (median of ${agents}, ${series} series each)`,
  );
  print('VictoriaMetrics', `${takes(agents)}, ${rowsPerSecond.toFixed(0)} samples/s from ${agents} agents`);
  print('Prometheus', takes(agents + 1));
  const { url } = prometheus;
  const itself = await (await fetch(`${url}/metrics`)).text();
  const evaluated = [...itself.matchAll(/^prometheus_rule_group_last_duration_seconds\{.*\} (\S+)$/gm)];
  const ruleMs = 1000 * evaluated.reduce((sum, [, value]) => sum + Number(value), 0);
  print('rules', `${ruleMs.toFixed(0)} ms for one evaluation of all groups`);
  const bad = [
    'svc_agent_series_refused_total',
    'svc_agent_dropped_total',
    'svc_agent_report_failures_total',
  ];
  for (const name of bad) print(name, `${await sumAt(url, `sum(${name})`)} in all agents`);
  print(
    'hosts',
    `${await sumAt(`http://${store}`, 'count(count by (instance) (persistence_requests))')} of ${agents} in the store`,
  );
} finally {
  for (const child of started) child.kill('SIGKILL');
  await pause(500);
  rmSync(place, { recursive: true, force: true });
}
