import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newFolder } from '../../folder.ts';
import { listening } from '../../ports.ts';
import { openTarget, pageTarget, sampleName, type Target } from '../../scrape.ts';
import { until } from '../../until.ts';

/** Prometheus reads the same page and reports what it has read. */
let directory: string;
let target: Target;
let prometheus: ChildProcess;
let alertmanager: ChildProcess;
let api: string;
let managed: string;

async function freePort(): Promise<number> {
  const server = createServer();
  const { port } = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const get = async (url: string): Promise<string | undefined> => {
  const response = await fetch(url);
  return response.ok ? await response.text() : undefined;
};

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
}

beforeAll(async () => {
  directory = newFolder(afterAll);
  target = await openTarget(afterAll);
  const [port, alertPort] = [await freePort(), await freePort()];
  api = `http://127.0.0.1:${port}`;
  managed = `http://127.0.0.1:${alertPort}`;
  const at = new URL(target.url).host;
  writeFileSync(
    join(directory, 'prometheus.yml'),
    `scrape_configs:\n  - job_name: page\n    scrape_interval: 200ms\n    scrape_timeout: 200ms\n    honor_labels: true\n    static_configs: [{targets: ["${at}"]}]\n`,
  );
  writeFileSync(join(directory, 'alertmanager.yml'), 'route: {receiver: none}\nreceivers: [{name: none}]\n');
  const options = { cwd: directory, stdio: 'ignore' } as const;
  const flags = ['--config.file=prometheus.yml', '--storage.tsdb.path=data'];
  prometheus = spawn('prometheus', [...flags, `--web.listen-address=127.0.0.1:${port}`], options);
  const alertFlags = ['--config.file=alertmanager.yml', '--storage.path=am', '--cluster.listen-address='];
  alertmanager = spawn(
    'prometheus-alertmanager',
    [...alertFlags, `--web.listen-address=127.0.0.1:${alertPort}`],
    options,
  );
  await until('Prometheus is ready', () => get(`${api}/-/ready`));
  await until('Alertmanager is ready', () => get(`${managed}/-/ready`));
});
afterAll(() => Promise.all([end(prometheus), end(alertmanager)]));

interface Result {
  metric: Record<string, string>;
  value: [number, string];
}

const ownNames = /^(?:up|scrape_.*)$/;
const numbers: Readonly<Record<string, number>> = { '+Inf': Infinity, '-Inf': -Infinity };

/** Every sample of the page as Prometheus has stored it; `marker` distinguishes this page from the one before. */
async function readByPrometheus(page: string, marker: string): Promise<Record<string, number>> {
  const marked = `${page}${page.endsWith('\n') ? '' : '\n'}marker_of_this_page{page="${marker}"} 1\n`;
  target.page(marked);
  const query = `${api}/api/v1/query?query=${encodeURIComponent('{job="page"}')}`;
  const results = await until(`page ${marker} is in Prometheus`, async () => {
    const answer = JSON.parse((await get(query))!) as { data: { result: Result[] } };
    const isThis = ({ metric }: Result) =>
      metric.__name__ === 'marker_of_this_page' && metric.page === marker;
    return answer.data.result.some(isThis) ? answer.data.result : undefined;
  });
  const samples = results
    .filter(({ metric }) => !ownNames.test(metric.__name__!) && metric.__name__ !== 'marker_of_this_page')
    .map(({ metric, value }): [string, number] => {
      const { __name__: name, job, instance, ...labels } = metric;
      return [sampleName(name!, labels), numbers[value[1]] ?? Number(value[1])];
    });
  return Object.fromEntries(samples);
}

/** What the agent has read, without empty labels, which Prometheus does not have. */
async function readByUs(page: string): Promise<Record<string, number>> {
  const { samples, invalidLines } = await pageTarget().read(page, 'text', 1000);
  expect(invalidLines).toBe(0);
  return Object.fromEntries(
    Object.entries(samples).map(([name, value]) => [name.replace(/\["[^"]*",""\],?/, ''), value]),
  );
}

test.each(['unusual', 'prometheus', 'alertmanager'])('both read the same from the page: %s', async (name) => {
  const pages: Record<string, () => Promise<string>> = {
    unusual: async () => readFileSync(new URL('../../fixtures/scrape/unusual.txt', import.meta.url), 'utf8'),
    prometheus: async () => (await get(`${api}/metrics`))!,
    alertmanager: async () => (await get(`${managed}/metrics`))!,
  };
  const page = await pages[name]!();
  const theirs = await readByPrometheus(page, name);
  expect(Object.keys(theirs).length).toBeGreaterThan(20);
  expect(await readByUs(page)).toEqual(theirs);
});
