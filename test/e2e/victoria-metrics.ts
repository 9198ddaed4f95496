import { join } from 'node:path';
import { isInstalled } from '../installed.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { type Running, start } from './process.ts';

export const hasVictoriaMetrics = isInstalled('victoria-metrics');

interface VictoriaMetrics extends Running {
  address: string;
  /** An instant query's result: one row per series. */
  query(expression: string): Promise<{ metric: Record<string, string>; value: number }[]>;
}

/** A real VictoriaMetrics with a folder of its own. */
export async function startVictoriaMetrics(directory: string): Promise<VictoriaMetrics> {
  const address = `127.0.0.1:${await freePort()}`;
  const running = start('victoria-metrics', [
    `-storageDataPath=${join(directory, 'victoria-metrics')}`,
    `-httpListenAddr=${address}`,
    '-search.latencyOffset=0s',
    '-search.disableCache',
  ]);
  await until('VictoriaMetrics is ready', async () => (await fetch(`http://${address}/health`)).ok);
  return {
    ...running,
    address,
    async query(expression) {
      const response = await fetch(`http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`);
      const { data } = (await response.json()) as {
        data: { result: { metric: Record<string, string>; value: [number, string] }[] };
      };
      return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
  };
}
