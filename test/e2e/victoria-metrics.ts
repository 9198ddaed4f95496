import { join } from 'node:path';
import { isInstalled } from '../installed.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { start } from './process.ts';
import { type Prometheus, queryAt } from './prometheus.ts';

export const hasVictoriaMetrics = isInstalled('victoria-metrics');

/** Starts a real VictoriaMetrics with its own folder. */
export async function startVictoriaMetrics(directory: string): Promise<Prometheus> {
  const address = `127.0.0.1:${await freePort()}`;
  const running = start('victoria-metrics', [
    `-storageDataPath=${join(directory, 'victoria-metrics')}`,
    `-httpListenAddr=${address}`,
    '-search.latencyOffset=0s',
    '-search.disableCache',
  ]);
  await until('VictoriaMetrics is ready', async () => (await fetch(`http://${address}/health`)).ok);
  return { ...running, address, query: queryAt(address) };
}
