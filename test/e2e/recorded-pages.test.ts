import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { listening } from '../ports.ts';
import { compare, pageNames, parse, rawPage, recordedCases, type Sample } from '../recorded-pages.ts';
import { until } from '../until.ts';
import { mainFile, type RunningAgent, start, startAgent } from './process.ts';

const place = newFolder(afterAll);
const service = createServer((request, response) => {
  response.setHeader('Content-Type', 'text/plain; version=0.0.4');
  response.end(rawPage(request.url!.slice(1)));
});
/** The client's process calls itself cadence_bench. */
const serviceOf = (name: string) => (name === 'sdk-bench-worker' ? 'bench' : name);
let agent: RunningAgent;
let shown: Record<string, Sample[]>;

beforeAll(async () => {
  const { port } = await listening(service);
  const file = join(place, 'agent.yaml');
  const blocks = pageNames.map(
    (name) =>
      `  ${serviceOf(name)}: {scrape: {url: 'http://127.0.0.1:${port}/${name}', interval: 30s, timeout: 20s}}\n`,
  );
  const metrics =
    'metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}\nadmin: {listenAddress: 127.0.0.1:0}\n';
  writeFileSync(file, `stateDirectory: ${place}/state\n${metrics}services:\n${blocks.join('')}`);
  agent = await startAgent(file);
  const samples = await until('the pages of all roles', async () => {
    const found = parse(await (await fetch(`http://${agent.address('metrics')}/metrics`)).text());
    const isThere = (name: string) =>
      found.some(
        ({ name: metric, labels }) =>
          metric === 'svc_role_scrape_up' && labels.svc_service === serviceOf(name),
      );
    const isShown = (name: string) =>
      found.some(
        ({ name: metric, labels }) =>
          !metric.startsWith('svc_role_') && labels.svc_service === serviceOf(name),
      );
    return pageNames.every((name) => isThere(name) && isShown(name)) ? found : undefined;
  });
  shown = Object.fromEntries(
    pageNames.map((name) => [name, samples.filter(({ labels }) => labels.svc_service === serviceOf(name))]),
  );
});
afterAll(async () => {
  await agent?.end();
  service.closeAllConnections();
  service.close();
});

const parsed = new Map<string, ReturnType<typeof parse>>();
/** A page as it was recorded; each is parsed once. */
function raw(page: string) {
  const samples = parsed.get(page) ?? parse(rawPage(page));
  parsed.set(page, samples);
  return samples;
}

test.each(recordedCases)('the built agent: %s: %s is the sum of its raw metrics', (page, _, row) => {
  const { expected, found } = compare(row, raw(page), shown[page]!);
  expect(Object.keys(found).sort()).toEqual(Object.keys(expected).sort());
  for (const [key, value] of Object.entries(expected)) expect(found[key], key).toBeCloseTo(value, 6);
});

test('a service that is no role has its series on a page of its own, and nowhere else', async () => {
  const own = async (service: string) =>
    parse(await (await fetch(`http://${agent.address('metrics')}/metrics?service=${service}`)).text()).filter(
      ({ name, labels }) => !name.startsWith('svc_role_') && labels.svc_service === 'bench',
    );
  expect((await own('bench')).length).toBeGreaterThan(100);
  for (const other of ['agent', ...pageNames.filter((name) => name !== 'sdk-bench-worker')])
    expect(await own(other), other).toEqual([]);
});

test('check --live says what each metric was made of, what is missing and what was left out', async () => {
  // This process serves the pages, so it must not wait for the command synchronously.
  const check = start(process.execPath, [
    mainFile,
    'check',
    '-c',
    join(place, 'agent.yaml'),
    '--live',
    '--json',
  ]);
  expect(await check.ended).toBe(0);
  const { live } = JSON.parse(check.output()) as { live: Record<string, unknown>[] };
  expect(live.find((one) => one.service === 'history')).toMatchObject({
    vocabulary: 'cadence',
    made: { svc_persistence_requests: ['persistence_requests', 'persistence_requests_per_domain'] },
    leftOut: expect.arrayContaining(['persistence_requests_rollup', 'persistence_latency_rollup']),
  });
  expect(live.find((one) => one.service === 'matching')).toMatchObject({
    missing: expect.arrayContaining(['svc_matching_tasks_dispatched']),
  });
});
