/**
 * Runs many agents on one machine, each beside a role with a small page. Every agent reports by remote write to one
 * VictoriaMetrics, and one Prometheus with the shipped rules scrapes it. Prints the CPU time and memory of an agent, how many
 * samples arrive, how long the rules take, and what was refused or lost. `npm run bench -- fleet [AGENTS] [SECONDS] [SERIES]`,
 * default 60 agents, 60 s after all have started, 500 series each.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { freePort } from '../test/ports.ts';
import { numberAt } from './arguments.ts';
import { median, sumOn, textOf } from './figures.ts';
import {
  hasCommand,
  launch,
  newPlace,
  pause,
  type RunningAgent,
  root,
  serve,
  startAgent,
  usageOf,
} from './process.ts';

const agents = numberAt(0, 'AGENTS', 60);
const seconds = numberAt(1, 'SECONDS', 60);
const series = numberAt(2, 'SERIES', 500);
const place = newPlace('fleet');

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
  const port = await serve((_request, response) => {
    round += 1;
    const lines = Array.from(
      { length: series },
      (_, n) => `persistence_requests{operation="Operation${n % 50}",domain="domain-${n}"} ${n + round}\n`,
    );
    response.end(`# TYPE persistence_requests counter\n${lines.join('')}`);
  });
  return `http://127.0.0.1:${port}/metrics`;
}

function startMember(n: number, page: string, store: string): Promise<RunningAgent> {
  const directory = join(place, `agent-${n}`);
  mkdirSync(directory);
  const config = join(directory, 'agent.yaml');
  writeFileSync(
    config,
    `stateDirectory: ${join(directory, 'state')}
instance: host-${n}
metrics:
  reportingInterval: 15s
  tags: {cluster: fleet}
  hostedmetrics: {protocol: remotewrite, endpoint: 'http://${store}/api/v1/write'}
admin: {listenAddress: 127.0.0.1:0}
services:
  history: {scrape: {url: '${page}', interval: 15s}}
`,
  );
  return startAgent(config);
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
  await answers(`http://${address}/-/ready`);
  return { child, url: `http://${address}` };
}

/** The value of an expression over all series that it yields; 0 if it yields no series. */
async function sumAt(url: string, expression: string): Promise<number> {
  const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expression)}`);
  const { data } = (await answer.json()) as { data: { result: { value: [number, string] }[] } };
  return data.result.reduce((sum, { value }) => sum + Number(value[1]), 0);
}

for (const name of ['victoria-metrics', 'prometheus']) {
  if (hasCommand(name)) continue;
  process.stdout.write(`${name} is not installed\n`);
  process.exit(1);
}
const store = `127.0.0.1:${await freePort()}`;
const data = join(place, 'victoria-metrics');
const victoria = launch('victoria-metrics', [`-storageDataPath=${data}`, `-httpListenAddr=${store}`]);
await answers(`http://${store}/health`);
const page = await servePage();
const fleet: RunningAgent[] = [];
for (let n = 0; n < agents; n++) fleet.push(await startMember(n, page, store));
const prometheus = await startPrometheus(fleet.map(({ address }) => address('admin')));
const all = [...fleet.map(({ child }) => child), victoria, prometheus.child];
// After two intervals every series is known to both servers.
await pause(30_000);
const before = all.map(({ pid }) => usageOf(pid!).cpuSeconds);
const rows = async () =>
  sumOn(await textOf(`http://${store}/metrics`), 'vm_rows_inserted_total\\{type="promremotewrite"\\}');
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
const itself = await textOf(`${url}/metrics`);
const ruleMs = 1000 * sumOn(itself, 'prometheus_rule_group_last_duration_seconds');
print('rules', `${ruleMs.toFixed(0)} ms for one evaluation of all groups`);
const bad = ['svc_agent_series_refused_total', 'svc_agent_dropped_total', 'svc_agent_report_failures_total'];
for (const name of bad) print(name, `${await sumAt(url, `sum(${name})`)} in all agents`);
print(
  'hosts',
  `${await sumAt(`http://${store}`, 'count(count by (instance) (persistence_requests))')} of ${agents} in the store`,
);
