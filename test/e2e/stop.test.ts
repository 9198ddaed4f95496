import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { serving } from '../serving.ts';
import { bySize, testOnce } from '../size.ts';
import { atTestEnd } from '../test-end.ts';
import { anyMoment, until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { mainFile, type Running, start, startAgent } from './process.ts';

/** An address that accepts requests and never answers. */
async function silentServer() {
  let requests = 0;
  let givenUp = 0;
  const port = await serving((request) => {
    requests++;
    request.on('close', () => givenUp++);
  });
  return {
    at: `127.0.0.1:${port}`,
    requests: () => requests,
    givenUp: () => givenUp,
  };
}

/**
 * The exit status. The process's own timer cuts off what prevents it from ending; the `withinMs` of a test is longer than that
 * timer.
 */
function stopped(one: Running): Promise<number | string> {
  one.child.kill('SIGTERM');
  return one.ended;
}

testOnce(
  'SIGTERM with 100 scrapes and a reload under way ends with 0, and waits for none of them',
  async () => {
    const directory = newFolder();
    const silent = await silentServer();
    const file = agentFile(directory, {
      more: `  worker: {scrape: {url: "http://${silent.at}/metrics", interval: 60s, timeout: 30s}}\n`,
    });
    const agent = await startAgent(file);
    atTestEnd(() => agent.end('SIGKILL'));
    const address = agent.address('metrics');
    const scrapes = Array.from({ length: 100 }, () =>
      fetch(`http://${address}/metrics`, {
        headers: { 'X-Prometheus-Scrape-Timeout-Seconds': '30' },
      }).then(
        (answer) => answer.text(),
        () => '',
      ),
    );
    await until('the role is asked', () => silent.requests() > 0);
    agent.child.kill('SIGHUP');
    expect([silent.givenUp(), await stopped(agent)]).toEqual([0, 0]);
    await Promise.all(scrapes);
  },
);

/** Whether a process has a child: the agent starts the one that checks its configuration once it handles signals. */
const hasChild = (pid: number): boolean =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim() !== '';

const delayStep = bySize({ short: 4, long: 1, nightly: 0.1 });

test('SIGTERM at any moment after the start ends with 0', async () => {
  const directory = newFolder();
  const file = agentFile(directory);
  for (let delay = 0; delay < 8; delay += delayStep) {
    const agent = start(process.execPath, [mainFile, 'run', '-c', file]);
    atTestEnd(() => agent.end('SIGKILL'));
    await until('the program runs', () => hasChild(agent.child.pid!));
    await anyMoment(() => delay / 8, 320);
    expect([delay, await stopped(agent)]).toEqual([delay, 0]);
  }
});

/** Each source and each reporter alone, without anything else that would keep a process alive. */
const alone: [name: string, text: (at: string, directory: string) => string][] = [
  ['nothing', () => 'instance: alone\n'],
  ['logs', (_, directory) => `services: {a: {logs: {paths: ['${join(directory, 'a*.log')}']}}}\n`],
  ['health', (at) => `services: {a: {health: "http://${at}/health"}}\n`],
  ['scrape', (at) => `services: {a: {scrape: "http://${at}/metrics"}}\n`],
  ['pushmetrics', (at) => `metrics: {pushmetrics: {hostPort: "${at}"}}\n`],
  [
    'hostedmetrics',
    (at) =>
      `metrics: {reportingInterval: 10s, hostedmetrics: {protocol: otlp, endpoint: "http://${at}/v1/metrics"}}\n`,
  ],
  ['pullmetrics', () => 'metrics: {pullmetrics: {listenAddress: "127.0.0.1:0"}}\n'],
  ['statsd', () => 'services: {a: {statsd: "127.0.0.1:0"}}\n'],
];

test.each(bySize({ short: alone.slice(0, 3), long: alone, nightly: alone }))(
  '%s alone, without the admin listener: runs until it is told to stop',
  async (_, text) => {
    const directory = newFolder();
    const file = join(directory, 'agent.yaml');
    const { at } = await silentServer();
    writeFileSync(file, `stateDirectory: ${join(directory, 'state')}\nadmin: ~\n${text(at, directory)}`);
    const agent = start(process.execPath, [mainFile, 'run', '-c', file]);
    atTestEnd(() => agent.end('SIGKILL'));
    await until('it is ready', () => agent.output().includes('"msg":"ready"'));
    // Nothing else happens to the agent, and it still reacts.
    agent.child.kill('SIGHUP');
    await until('it reloads', () => agent.output().includes('configuration reloaded'));
    expect(await stopped(agent)).toBe(0);
  },
);

testOnce(
  'started by itself, without flags for Node, its young generation stays small under load',
  async () => {
    const directory = newFolder();
    const log = join(directory, 'history.log');
    const line = (n: number) =>
      `{"level":"info","logger":"l${n % 50}","msg":"m${n}","ts":"2026-01-02T03:04:05Z"}\n`;
    writeFileSync(log, Array.from({ length: 300_000 }, (_, n) => line(n)).join(''));
    const agent = await startAgent(agentFile(directory, { logs: log }));
    atTestEnd(() => agent.end('SIGKILL'));
    const value = async (series: RegExp) => {
      const page = await (await fetch(`http://${agent.address('metrics')}/metrics`)).text();
      return [...page.matchAll(series)].reduce((sum, [, number]) => sum + Number(number), 0);
    };
    await until(
      'all lines are counted',
      async () => (await value(/^svc_log_entries_total\{.*\} (\S+)$/gm)) === 300_000,
    );
    const bytes = await value(/^svc_agent_nodejs_heap_space_size_total_bytes\{.*space="new".*\} (\S+)$/gm);
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThanOrEqual(4 * 1024 * 1024);
  },
);
