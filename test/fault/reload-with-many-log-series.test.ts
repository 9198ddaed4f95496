import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startAgent } from '../../src/agent/agent.ts';
import { loadConfig } from '../../src/agent/config/load.ts';
import type { AgentConfig, ReadyConfig } from '../../src/agent/config/types.ts';
import { createLogPipeline } from '../../src/agent/log-pipeline.ts';
import { createSelfMetrics } from '../../src/agent/self-metrics.ts';
import { systemClock } from '../../src/core/clock.ts';
import type { Log } from '../../src/core/ports.ts';
import { createRegistry } from '../../src/core/registry/registry.ts';
import { listenersIn } from '../entries.ts';
import { newFolder } from '../folder.ts';
import { showAll } from '../registry.ts';
import { bySize, testOnce } from '../size.ts';
import { until } from '../until.ts';

const silent: Log = { write() {}, named: () => silent };

const perLogger = '{name: per_logger, type: counter, labels: {logger: logger}}';

/** A directory with a configuration and a log of one entry per logger, which makes two series of each. */
function folder(loggers: number) {
  const directory = newFolder();
  const path = (name: string) => join(directory, name);
  const configure = (more: 'lines' | undefined = undefined) =>
    writeFileSync(
      path('agent.yaml'),
      `stateDirectory: ${path('state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: ~
log: {outputFile: ${path('agent.log')}}
limits: {seriesPerMetric: 200000, series: 400000}
services:
  history:
    logs: {paths: ['${path('history.log')}'], startAt: beginning, rules: [${perLogger}${more ? `, {name: ${more}, type: counter}` : ''}]}
`,
    );
  const entries = Array.from({ length: loggers }, (_, i) => `{"level":"info","logger":"l${i}"}\n`).join('');
  configure();
  writeFileSync(path('history.log'), entries);
  return {
    path,
    configure,
    entries,
    load: () => loadConfig({ file: path('agent.yaml'), env: {}, cwd: directory }),
  };
}

/** Each logger makes two series. */
const loggers = bySize({ short: 10_000, long: 50_000, nightly: 50_000 });

test(`${2 * loggers} series change their intake in slices, and each keeps its total`, async () => {
  const { path, configure, entries, load } = folder(loggers);
  const configOf = async () => (await load()).config as AgentConfig;
  const before = await configOf();
  configure('lines');
  const after = await configOf();
  // Each read of the clock advances it by 3 ms, so that a slice ends after the second one.
  let lookups = 0;
  const clock = { ...systemClock, monotonicMs: () => 3 * lookups++ };
  const registry = createRegistry(
    { limits: before.limits, serviceKeys: ['history'] },
    { clock: systemClock },
  );
  const self = createSelfMetrics();
  const pipeline = createLogPipeline({
    registry,
    self,
    clock,
    logsSection: { assign() {} } as never,
    processEvents: { logged() {}, started() {} },
    opened() {},
    drops: registry.drops,
    log: silent,
  });
  await pipeline.start(before);
  onTestFinished(() => pipeline.stop());
  await until('all lines are counted', () => pipeline.files()[0]?.offset === entries.length);
  const lag = 'svc_log_lag_bytes{svc_service="history"}';
  await until('the first poll is over', () => lag in showAll(registry));

  const counted = () => registry.status().series;
  const all = counted();
  expect(all).toBeGreaterThan(2 * loggers);
  let [longest, least, last] = [0, all, all];
  /** Records, at each turn of the event loop, how many series the slice before it moved. */
  const watch = () => {
    const now = counted();
    longest = Math.max(longest, Math.abs(now - last));
    last = now;
    least = Math.min(least, now);
    if (pipeline.switched !== undefined) setImmediate(watch);
  };
  const swap = pipeline.prepare(after)();
  watch();
  await swap;
  expect(least).toBeLessThan(1000);
  expect(longest).toBeLessThan(5000);
  appendFileSync(path('history.log'), '{"level":"info","logger":"l7"}\n');
  await until('the new line is counted', () => (pipeline.files()[0]?.offset ?? 0) > entries.length);
  registry.durable.publish(registry.durable.freeze());
  const shown = Object.entries(showAll(registry)).filter(([name]) => name.includes('logger="l'));
  expect(shown).toHaveLength(2 * loggers);
  expect(shown.filter(([, value]) => value !== 1)).toEqual([
    ['per_logger{logger="l7",svc_service="history"}', 2],
    ['svc_log_entries_total{level="info",logger="l7",svc_service="history"}', 2],
  ]);
  expect(registry.status().series).toBe(all + 1);
});

testOnce('every scrape during a reload shows every series', async () => {
  const { path, configure, load } = folder(20_000);
  const agent = await startAgent((await load()) as ReadyConfig, { clock: systemClock, load });
  onTestFinished(() => agent.stop());
  const address = listenersIn(readFileSync(path('agent.log'), 'utf8')).get('metrics');
  const sumOf = (page: string) =>
    [...page.matchAll(/^svc_log_entries_total\{.*logger="l.*\} (\d+)$/gm)].reduce(
      (sum, [, n]) => sum + Number(n),
      0,
    );
  const scrape = async () => (await fetch(`http://${address}/metrics`)).text();
  await until('all lines are counted', async () => sumOf(await scrape()) === 20_000);
  const seen = new Set<number>();
  configure('lines');
  agent.reload();
  for (let page = ''; !page.includes('\nlines{'); seen.add(sumOf(page))) page = await scrape();
  configure();
  agent.reload();
  for (let page = '\nlines{'; page.includes('\nlines{'); seen.add(sumOf(page))) page = await scrape();
  expect([...seen]).toEqual([20_000]);
});
