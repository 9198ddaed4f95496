import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { listening } from '../../ports.ts';
import { root } from '../../unit/house/imports.ts';
import { until } from '../../until.ts';
import { startAgent } from '../process.ts';
import { type LivePrometheus, startLivePrometheus } from './prometheus.ts';

/**
 * Plays back the pages that a real service of the spec's kind sent under load: counters and histograms grow as fast as they did
 * on average, gauges stay the same.
 */

/** The recorded page of each service: the four roles, and the processes of a client of the service. */
const pages = {
  frontend: 'frontend',
  history: 'history',
  matching: 'matching',
  worker: 'worker',
  bench: 'sdk-bench-worker',
};
/** How long the recorded processes had approximately run. */
const recordedSeconds = 1200;
export const scrapeSeconds = 3;
const every = `${scrapeSeconds}s`;

/** Registers a call for the end. */
type Keep = (stop: () => unknown) => void;

/** A page as a function of the seconds since the recording. */
function playback(name: string): (seconds: number) => string {
  const text = gunzipSync(readFileSync(join(root, `test/fixtures/real-service/${name}.txt.gz`))).toString();
  const kinds = new Map([...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, kind]) => [name!, kind!]));
  const grows = (name: string) => {
    const kind = kinds.get(name) ?? kinds.get(name.replace(/_(?:bucket|sum|count)$/, ''));
    return kind === 'counter' || kind === 'histogram';
  };
  const lines = text.split('\n').map((line) => {
    const [, series = '', value = ''] = /^([^#\s][^\s{]*(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    return series && grows(series.replace(/\{.*/, '')) ? { series, value: Number(value) } : { line };
  });
  return (seconds) =>
    lines
      .map((of) => ('line' in of ? of.line : `${of.series} ${of.value * (1 + seconds / recordedSeconds)}`))
      .join('\n');
}

async function startRecorded(name: string, keep: Keep) {
  const page = playback(name);
  const since = performance.now();
  const metrics = await listening(
    createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' });
      response.end(page((performance.now() - since) / 1000));
    }),
  );
  const health = await listening(createServer((_, response) => response.end('{"ok":true,"msg":"OK"}')));
  keep(metrics.close);
  keep(health.close);
  return { metrics: metrics.port, health: health.port };
}

/** The recorded service, the built agent beside it and a real Prometheus that has scraped both for a while. */
export async function startPlayback(
  directory: string,
  ruleFiles: readonly string[],
  keep: Keep,
): Promise<LivePrometheus> {
  const started = await Promise.all(
    Object.entries(pages).map(async ([name, page]) => [name, await startRecorded(page, keep)] as const),
  );
  const config = join(directory, 'agent.yaml');
  writeFileSync(
    config,
    stringify({
      stateDirectory: join(directory, 'state'),
      metrics: { tags: { cluster: 'dc1' }, pullmetrics: { listenAddress: '127.0.0.1:0' } },
      admin: { listenAddress: '127.0.0.1:0' },
      services: Object.fromEntries(
        started.map(([name, { metrics, health }]) => [
          name,
          {
            scrape: { url: `http://127.0.0.1:${metrics}/metrics`, interval: every, timeout: every },
            health: `http://127.0.0.1:${health}/health`,
          },
        ]),
      ),
    }),
  );
  const agent = await startAgent(config);
  keep(() => agent.end());
  const target = [{ address: agent.address('metrics'), cluster: 'dc1' }];
  const prometheus = await startLivePrometheus(directory, {
    targets: Object.fromEntries([...Object.keys(pages), 'svc-agent'].map((job) => [job, target])),
    ruleFiles,
    alertmanager: '127.0.0.1:9',
    every,
  });
  keep(() => prometheus.end());
  // This is longer than the rules remember an outage: before the first answer every role was down.
  const seen = 'count(sum_over_time(up[45s]) >= 13)';
  await until(
    'all is scraped for a while',
    async () => (await prometheus.value(seen)) === Object.keys(pages).length + 1,
  );
  return prometheus;
}
