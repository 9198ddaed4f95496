import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stringify } from 'yaml';
import type { StatusReport } from '../../src/agent/report.ts';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { until } from '../until.ts';
import { startAgent } from './process.ts';

const textOf = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const page = textOf('docs/http-api.md').split('## Fields of the answers')[1]!;
const onPage = new Set(
  [...page.matchAll(/`([A-Za-z.[\]]+)`/g)].flatMap(([, name]) => name!.split(/\.|\[\]/)),
);

/** Fields whose keys are names, such as roles and reasons, or depend on the kind of the probe. */
const byName = new Set(['levels', 'restarts', 'versions', 'telemetryTruth', 'about', 'phasesMs', 'details']);

/** Each key of an answer, at any depth. */
function keysOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(keysOf);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, one]) => [key, ...(byName.has(key) ? [] : keysOf(one))]);
}

/** An agent beside a service in which nothing answers and whose log has errors. */
async function startSickService() {
  const folder = newFolder();
  const closed = await freePort();
  const log = join(folder, 'history.log');
  mkdirSync(join(folder, 'state'));
  writeFileSync(
    log,
    '{"level":"error","logger":"shard","msg":"Persistent fetch operation failure","wf-id":"w","wf-run-id":"r"}\nno JSON\n',
  );
  const file = join(folder, 'agent.yaml');
  writeFileSync(
    file,
    stringify({
      stateDirectory: join(folder, 'state'),
      metrics: { pushmetrics: { hostPort: `127.0.0.1:${closed}` } },
      admin: { listenAddress: '127.0.0.1:0' },
      services: {
        history: {
          health: { url: `http://127.0.0.1:${closed}/health`, interval: '1s', failureThreshold: 1 },
          scrape: { url: `http://127.0.0.1:${closed}/metrics`, interval: '1s', timeout: '1s' },
          logs: { paths: [log], startAt: 'beginning' },
        },
        worker: { statsd: '127.0.0.1:0' },
      },
      stores: [
        {
          ...{ name: 'main', kind: 'postgres', address: `127.0.0.1:${closed}`, interval: '1s' },
          databases: { persistence: 'svc' },
        },
      ],
    }),
  );
  const agent = await startAgent(file);
  onTestFinished(() => void agent.end('SIGKILL'));
  return async (path: string) =>
    (await (await fetch(`http://${agent.address('admin')}${path}`)).json()) as unknown;
}

test('each field that a sick service makes the built agent answer with is on the page', async () => {
  const ask = await startSickService();
  const report = await until('the service is sick', async () => {
    const answer = (await ask('/api/status')) as StatusReport;
    const isKnown = answer.probes.every(({ last }) => last) && answer.scrapes[0]?.lastFailure !== undefined;
    return isKnown && answer.verdict.problems.length > 1 && answer.entries.lastErrors.length > 0
      ? answer
      : undefined;
  });
  const answers = [report, await ask('/probes'), await ask('/probe?name=health/history&debug=1')];
  const keys = new Set(answers.flatMap(keysOf));
  expect(keys.size).toBeGreaterThan(100);
  expect([...keys].filter((key) => !onPage.has(key))).toEqual([]);
});

test('each field that the types of the status have is on the page', () => {
  const types = textOf('src/agent/report.ts').replaceAll(/\/\*\*[\s\S]*?\*\//g, '');
  const names = new Set([...types.matchAll(/\b(\w+)\??: /g)].map(([, name]) => name!));
  expect(names.size).toBeGreaterThan(90);
  expect([...names].filter((name) => !onPage.has(name))).toEqual([]);
});
