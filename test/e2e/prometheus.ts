import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled } from '../installed.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { type Running, start } from './process.ts';

export const hasPrometheus = isInstalled('prometheus');

/** Runs an instant query; its result has one row per series. */
type Query = (expression: string) => Promise<{ metric: Record<string, string>; value: number }[]>;

export interface Prometheus extends Running {
  address: string;
  query: Query;
}

/** Queries the server at host:port, which has the API of Prometheus. */
export const queryAt =
  (address: string): Query =>
  async (expression) => {
    const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { data } = (await response.json()) as {
      data: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  };

/** Starts a real Prometheus that scrapes the targets every 200 ms into its own folder. */
export async function startPrometheus(
  directory: string,
  jobs: Record<string, string>,
  extra = '',
): Promise<Prometheus> {
  const configFile = join(directory, 'prometheus.yml');
  const scrapes = Object.entries(jobs).map(
    ([job, target]) => `  - job_name: ${job}\n    static_configs: [{targets: ['${target}']}]\n`,
  );
  writeFileSync(
    configFile,
    `global: {scrape_interval: 200ms, evaluation_interval: 1s}\nscrape_configs:\n${scrapes.join('')}${extra}`,
  );
  const address = `127.0.0.1:${await freePort()}`;
  const running = start('prometheus', [
    `--config.file=${configFile}`,
    `--storage.tsdb.path=${join(directory, 'tsdb')}`,
    `--web.listen-address=${address}`,
  ]);
  await until('Prometheus is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
  return { ...running, address, query: queryAt(address) };
}
