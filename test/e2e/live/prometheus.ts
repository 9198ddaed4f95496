import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse, stringify } from 'yaml';
import { freePort } from '../../ports.ts';
import { until } from '../../until.ts';
import { mainFile, type Running, start } from '../process.ts';

// The previews are drawn from a bundle, in which this file is at another place.
const shipped = join(dirname(mainFile), '../deploy/prometheus/prometheus.yml');

/** An agent's listener, and the cluster that it belongs to. */
interface Target {
  address: string;
  cluster: string;
  environment?: string;
}

/** The parts of the shipped configuration that the test replaces. */
export interface Wanted {
  /** Targets by job; a job without an entry has none. */
  targets: Readonly<Record<string, readonly Target[]>>;
  ruleFiles: readonly string[];
  /** host:port */
  alertmanager: string;
  /** Scrape interval and timeout. Default: 1s. */
  every?: string;
  /** Default: 1s. */
  evaluateEvery?: string;
}

/** A series that an alert produced. */
interface Firing {
  alertname: string;
  pack: string;
  [label: string]: string;
}

export interface LivePrometheus {
  /** host:port */
  readonly address: string;
  end(): Promise<unknown>;
  firing(): Promise<Firing[]>;
  /** Every series of an expression, without its values. */
  series(expression: string): Promise<Record<string, string>[]>;
  /** Every rule, with whether its last evaluation failed, and when that was. */
  rules(): Promise<{ name: string; health: string; lastError?: string; lastEvaluation: string }[]>;
  /** The value of an expression with one series; 0 if it has none. */
  value(expression: string): Promise<number>;
  configure(wanted: Wanted): Promise<void>;
  /** Ends Prometheus with this signal and starts it again with the same data. */
  restart(signal: NodeJS.Signals): Promise<void>;
}

/** The agents of staging give their only cluster the name of one of production's clusters. */
const renamed = [
  { source_labels: ['environment'], regex: 'staging', target_label: 'cluster', replacement: 'dc1' },
];

function configured({
  targets,
  ruleFiles,
  alertmanager,
  every = '1s',
  evaluateEvery = '1s',
}: Wanted): string {
  const config = parse(readFileSync(shipped, 'utf8'));
  config.global = { scrape_interval: every, scrape_timeout: every, evaluation_interval: evaluateEvery };
  config.rule_files = ruleFiles;
  config.alerting.alertmanagers = [{ static_configs: [{ targets: [alertmanager] }] }];
  const shippedJobs: string[] = config.scrape_configs.map((job: { job_name: string }) => job.job_name);
  // A service with its own name has its own page and job.
  for (const job of Object.keys(targets).filter((name) => !shippedJobs.includes(name)))
    config.scrape_configs.push({ job_name: job, honor_labels: true, params: { service: [job] } });
  for (const job of config.scrape_configs) {
    job.static_configs = (targets[job.job_name] ?? []).map(({ address, ...labels }) => ({
      targets: [address],
      labels,
    }));
    job.metric_relabel_configs = renamed;
  }
  return stringify(config, { aliasDuplicateObjects: false });
}

/** A real Prometheus with the shipped jobs, at intervals of a second. */
export async function startLivePrometheus(directory: string, wanted: Wanted): Promise<LivePrometheus> {
  const configFile = join(directory, 'prometheus.yml');
  const write = (text: string) => {
    writeFileSync(`${configFile}.new`, text);
    renameSync(`${configFile}.new`, configFile);
  };
  write(configured(wanted));
  const address = `127.0.0.1:${await freePort()}`;
  const begin = async (): Promise<Running> => {
    const running = start('prometheus', [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(directory, 'tsdb')}`,
      `--web.listen-address=${address}`,
      '--web.enable-lifecycle',
      // After a reload Prometheus has no Alertmanager for a moment; what was lost then is sent again.
      '--rules.alert.resend-delay=5s',
      // The grace period of deploy/prometheus/prometheus.yml, shortened like the windows.
      '--rules.alert.for-grace-period=2s',
    ]);
    await until('Prometheus is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
    return running;
  };
  let running = await begin();
  const ask = async <T>(path: string): Promise<T> =>
    ((await (await fetch(`http://${address}/api/v1/${path}`)).json()) as { data: T }).data;
  return {
    address,
    end: () => running.end(),
    async restart(signal) {
      await running.end(signal);
      running = await begin();
    },
    async firing() {
      const { alerts } = await ask<{ alerts: { labels: Firing; state: string }[] }>('alerts');
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels);
    },
    async series(expression) {
      const query = `query?query=${encodeURIComponent(expression)}`;
      const { result } = await ask<{ result: { metric: Record<string, string> }[] }>(query);
      return result.map(({ metric }) => metric);
    },
    async rules() {
      const { groups } = await ask<{ groups: { rules: Awaited<ReturnType<LivePrometheus['rules']>> }[] }>(
        'rules',
      );
      return groups.flatMap(({ rules }) => rules);
    },
    async value(expression) {
      const query = `query?query=${encodeURIComponent(expression)}`;
      const { result } = await ask<{ result: { value: [number, string] }[] }>(query);
      return Number(result[0]?.value[1] ?? 0);
    },
    async configure(next) {
      write(configured(next));
      const response = await fetch(`http://${address}/-/reload`, { method: 'POST' });
      if (!response.ok) throw new Error(`Prometheus: ${await response.text()}`);
    },
  };
}
