import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { listening } from '../health.ts';
import { root } from '../unit/house/imports.ts';
import { startLivePrometheus } from './live/prometheus.ts';
import { writeRules } from './live/rules.ts';
import { folder, startAgent, until } from './process.ts';
import { hasPrometheus } from './prometheus.ts';

/**
 * The pages that a real service of the spec's kind sent under load, played back: counters and histograms grow as fast
 * as they did on average, gauges stay. What was well then must not alert. Windows and `for` are cut as in the live run.
 */

const roles = ['frontend', 'history', 'matching', 'worker'] as const;
/** How long the recorded processes had run, about. */
const recordedSeconds = 1200;

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

/** The page of a role as a function of the seconds since the recording. */
function playback(role: string): (seconds: number) => string {
  const text = gunzipSync(readFileSync(join(root, `test/fixtures/real-service/${role}.txt.gz`))).toString();
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

async function startRecorded(role: string) {
  const page = playback(role);
  const since = performance.now();
  const metrics = await listening(
    createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' });
      response.end(page((performance.now() - since) / 1000));
    }),
  );
  const health = await listening(createServer((_, response) => response.end('{"ok":true,"msg":"OK"}')));
  stops.push(metrics.close, health.close);
  return { metrics: metrics.port, health: health.port };
}

/**
 * What was wrong while the pages were recorded: 188 tasks waited in a list that nobody polled, and workflows of the
 * load generator timed out. Other lists had a backlog, and their polls succeeded.
 */
const trueOfTheRecording = [
  'SvcTaskListAbandoned cadence_bench nobody_polls',
  'SvcTaskListStalled cadence_bench nobody_polls',
  'SvcWorkflowTimeoutShare cadence_bench ',
];

test.skipIf(!hasPrometheus)('over the recorded pages only what was wrong alerts', async () => {
  const { path, remove } = folder();
  stops.push(remove);
  const started = await Promise.all(roles.map(async (role) => [role, await startRecorded(role)] as const));
  const config = join(path, 'agent.yaml');
  writeFileSync(
    config,
    stringify({
      stateDirectory: join(path, 'state'),
      metrics: { tags: { cluster: 'dc1' }, pullmetrics: { listenAddress: '127.0.0.1:0' } },
      admin: { listenAddress: '127.0.0.1:0' },
      services: Object.fromEntries(
        started.map(([role, { metrics, health }]) => [
          role,
          {
            scrape: { url: `http://127.0.0.1:${metrics}/metrics`, interval: '3s', timeout: '3s' },
            health: `http://127.0.0.1:${health}/health`,
          },
        ]),
      ),
    }),
  );
  const agent = await startAgent(config);
  stops.push(() => agent.end());
  const rules = join(path, 'rules');
  mkdirSync(rules);
  writeRules(rules);
  const target = [{ address: agent.address('metrics'), cluster: 'dc1' }];
  const prometheus = await startLivePrometheus(path, {
    targets: Object.fromEntries([...roles, 'svc-agent'].map((job) => [job, target])),
    ruleFiles: ['recommended', 'slo'].map((pack) => join(rules, `${pack}.rules.yml`)),
    alertmanager: '127.0.0.1:9',
    every: '3s',
  });
  stops.push(() => prometheus.end());
  const seen = 'count(sum_over_time(up[30s]) >= 8)';
  await until(
    'all is scraped for a while',
    async () => (await prometheus.value(seen)) === 5 || undefined,
    90_000,
  );
  // What the rules read is there, so that silence means something.
  for (const metric of [
    'svc_persistence_requests',
    'svc_matching_poll_success',
    'svc_matching_tasklist_backlog',
  ])
    expect(await prometheus.value(`count(${metric})`), metric).toBeGreaterThan(0);
  const firing = (await prometheus.firing()).map(
    ({ alertname, domain = '', tasklist = '', ...rest }) =>
      `${alertname} ${domain || rest.svc_service || rest.job || ''} ${tasklist}`,
  );
  expect(firing.sort()).toEqual(trueOfTheRecording);
});
