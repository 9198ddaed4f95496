import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { serving } from '../serving.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { startExample, wholePage } from './example.ts';
import { type RunningAgent, startAgent } from './process.ts';
import { hasPrometheus, startPrometheus } from './prometheus.ts';
import { hasVictoriaMetrics, startVictoriaMetrics } from './victoria-metrics.ts';

/** The example service's own page of its history role, frozen so that every reader sees the same numbers. */
async function stillPage(directory: string): Promise<string> {
  mkdirSync(join(directory, 'service'));
  const example = await startExample(join(directory, 'service'));
  const page = await wholePage(example);
  await example.end();
  return `127.0.0.1:${await serving((_request, response) => response.end(page))}`;
}

async function agentFor(
  directory: string,
  name: string,
  target: string,
  metrics: string,
): Promise<RunningAgent> {
  const own = join(directory, name);
  mkdirSync(own);
  const file = join(own, 'agent.yaml');
  writeFileSync(
    file,
    `instance: ${name}
stateDirectory: ${join(own, 'state')}
metrics: {reportingInterval: 500ms, ${metrics}}
admin: {listenAddress: 127.0.0.1:0}
services: {history: {scrape: {url: 'http://${target}/metrics', interval: 500ms, timeout: 400ms}}}
`,
  );
  const agent = await startAgent(file);
  atTestEnd(() => agent.end());
  return agent;
}

type Row = { metric: Record<string, string>; value: number };
const added = new Set(['job', 'instance', 'svc_service']);

/** The rows by name and labels, without the labels that each way adds. */
const byLabels = (rows: readonly Row[]) =>
  Object.fromEntries(
    rows
      .map(
        ({ metric, value }) =>
          [
            JSON.stringify(
              Object.entries(metric)
                .filter(([name]) => !added.has(name))
                .sort(),
            ),
            value,
          ] as const,
      )
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );

/**
 * Compares numbers from VictoriaMetrics, which stores some twelve decimal digits. Rounding is no way to compare, because close
 * values may round differently.
 */
function expectClose(actual: Record<string, number>, wanted: Record<string, number>): void {
  expect(Object.keys(actual).sort()).toEqual(Object.keys(wanted).sort());
  const differing = Object.entries(wanted).filter(
    ([key, value]) => !(Math.abs(actual[key]! - value) <= 1e-9 * Math.abs(value)),
  );
  expect(differing).toEqual([]);
}

const ofService =
  '{__name__=~"svc_(history|persistence|workflow|memory|num|go|restarts|decision|activity).*"}';

describe('the same numbers come out', () => {
  test.skipIf(!hasPrometheus)(
    'of a Prometheus that scrapes the role and of one that scrapes the agent',
    async () => {
      const directory = newFolder();
      const target = await stillPage(directory);
      const agent = await agentFor(directory, 'host-1', target, 'pullmetrics: {listenAddress: 127.0.0.1:0}');
      const prometheus = await startPrometheus(directory, {
        direct: target,
        agent: agent.address('metrics'),
      });
      atTestEnd(() => prometheus.end());
      const of = async (job: string) =>
        byLabels(await prometheus.query(ofService.replace('{', `{job="${job}",`)));
      await until('both are scraped', async () => {
        const [direct, through] = [await of('direct'), await of('agent')];
        return Object.keys(direct).length > 100 && Object.keys(through).length >= Object.keys(direct).length;
      });
      expect(await of('agent')).toEqual(await of('direct'));
    },
  );

  test.skipIf(!hasPrometheus || !hasVictoriaMetrics)(
    'by remote write, and two agents on two hosts are two sets of series',
    async () => {
      const directory = newFolder();
      const target = await stillPage(directory);
      const prometheus = await startPrometheus(directory, { direct: target });
      atTestEnd(() => prometheus.end());
      const store = await startVictoriaMetrics(directory);
      atTestEnd(() => store.end());
      const hosted = `hostedmetrics: {protocol: remotewrite, endpoint: 'http://${store.address}/api/v1/write'}`;
      for (const name of ['host-1', 'host-2']) await agentFor(directory, name, target, hosted);
      const direct = await until('the role is scraped', async () => {
        const rows = byLabels(await prometheus.query(ofService.replace('{', '{job="direct",')));
        return Object.keys(rows).length > 100 ? rows : undefined;
      });
      for (const instance of ['host-1', 'host-2']) {
        const written = await until(`${instance} is written`, async () => {
          const rows = byLabels(
            await store.query(ofService.replace('{', `{job="history",instance="${instance}",`)),
          );
          return Object.keys(rows).length >= Object.keys(direct).length ? rows : undefined;
        });
        expectClose(written, direct);
      }
      const own = await store.query('svc_agent_build_info{job="svc-agent"}');
      expect(own.map(({ metric }) => metric.instance).sort()).toEqual(['host-1', 'host-2']);
    },
  );
});
