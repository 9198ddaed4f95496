import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { freePort } from '../ports.ts';
import { serving } from '../serving.ts';
import { until } from '../until.ts';
import { agentFile } from './agent-file.ts';
import { type RunningAgent, startAgent } from './process.ts';
import { createWriter } from './writer.ts';

let agent: RunningAgent | undefined;
afterEach(async () => {
  await agent?.end();
  agent = undefined;
});

async function value(address: string, series: RegExp): Promise<number | undefined> {
  const page = await (await fetch(`http://${address}/metrics`)).text();
  const found = [...page.matchAll(series)].map(([, number]) => Number(number));
  return found.length > 0 ? found.reduce((sum, number) => sum + number, 0) : undefined;
}

const entries = /^svc_log_entries_total\{.*\} (\S+)$/gm;
const reloadOk = /^svc_agent_config_last_reload_successful (\S+)$/gm;

/** Replaces the file by rename, as editors and configuration tools do. */
function replace(file: string, edit: (text: string) => string): void {
  writeFileSync(`${file}.new`, edit(readFileSync(file, 'utf8')));
  renameSync(`${file}.new`, file);
}

/** Starts an agent that follows a log; `more` are other services. `address` is the address of its page. */
async function startFollowing(more = '') {
  const directory = newFolder();
  const log = join(directory, 'history.log');
  const writer = createWriter(log);
  onTestFinished(() => writer.close());
  const file = agentFile(directory, { logs: log, more });
  agent = await startAgent(file);
  return { file, writer, address: agent.address('metrics') };
}

test('a changed file is swapped in: what did not change keeps its totals, a new rule begins, lines count once', async () => {
  const { file, writer, address } = await startFollowing();
  writer.write(1_000);
  await until('1,000 lines', async () => (await value(address, entries)) === 1_000);

  const rule = 'rules: [{name: svc_shard_entries_total, type: counter, labels: {domain: wf-domain-name}}]';
  replace(file, (text) => text.replace('startAt: beginning', `startAt: beginning, ${rule}`));
  const ruled = /^svc_shard_entries_total\{.*\} (\S+)$/gm;
  writer.write(500);
  await until('1,500 lines', async () => (await value(address, entries)) === 1_500);
  await until('the rule', async () => {
    writer.write(1);
    return (await value(address, ruled)) !== undefined;
  });
  await until('all lines', async () => (await value(address, entries)) === writer.total());
  expect(await value(address, ruled)).toBeLessThanOrEqual(writer.total() - 1_000);
});

test('totals go on under other global tags', async () => {
  const { file, writer, address } = await startFollowing();
  writer.write(1_000);
  await until('1,000 lines', async () => (await value(address, entries)) === 1_000);
  replace(file, (text) => text.replace('metrics:\n', 'metrics:\n  tags: {cluster: dc7}\n'));
  const tagged = /^svc_log_entries_total\{.*cluster="dc7".*\} (\S+)$/gm;
  await until('the tag', async () => (await value(address, tagged)) === 1_000);
  writer.write(300);
  await until('1,300 lines', async () => (await value(address, tagged)) === 1_300);
  expect(await value(address, entries)).toBe(1_300);
});

test('what checks counted goes on beside another service and under other limits', async () => {
  const health = '{url: http://127.0.0.1:1/health, interval: 1h}';
  const { file, address } = await startFollowing(`  worker: {health: ${health}}\n`);
  const failures = /^svc_role_health_failures_total\{.*"worker".*\} (\S+)$/gm;
  await until('a failure', async () => ((await value(address, failures)) ?? 0) > 0);
  const before = await value(address, failures);
  replace(
    file,
    (text) => `${text.replace('services:\n', 'services:\n  bench: {}\n')}limits: {series: 9000}\n`,
  );
  await until('the reload', () => agent!.output().includes('configuration reloaded'));
  expect(await value(address, failures)).toBeGreaterThanOrEqual(before!);
});

test('a listener moves: the new one is there before the old one closes', async () => {
  const directory = newFolder();
  const [one, other] = [await freePort(), await freePort()];
  const file = agentFile(directory);
  replace(file, (text) =>
    text.replace(
      'pullmetrics: {listenAddress: 127.0.0.1:0}',
      `pullmetrics: {listenAddress: 127.0.0.1:${one}}`,
    ),
  );
  agent = await startAgent(file);
  replace(file, (text) => text.replace(`:${one}}`, `:${other}}`));
  agent.child.kill('SIGHUP');
  await until('the new address answers', async () => (await fetch(`http://127.0.0.1:${other}/metrics`)).ok);
  await until('the old address is free', () =>
    fetch(`http://127.0.0.1:${one}/metrics`).then(
      () => undefined,
      () => true,
    ),
  );
});

test('a bad file changes nothing, is logged, and shows', async () => {
  const { file, writer, address } = await startFollowing();
  expect(await value(address, reloadOk)).toBe(1);
  replace(file, (text) => `${text}nonsense: true\n`);
  await until('the failure shows', async () => (await value(address, reloadOk)) === 0);
  expect(agent!.output()).toContain('nonsense: unknown key');
  writer.write(100);
  await until('it still counts', async () => (await value(address, entries)) === 100);

  replace(file, (text) => text.replace('nonsense: true\n', ''));
  await until('the repair shows', async () => (await value(address, reloadOk)) === 1);
  expect(await value(address, entries)).toBe(100);
});

test('a port in use in the new file changes nothing', async () => {
  const directory = newFolder();
  const file = agentFile(directory);
  agent = await startAgent(file);
  const taken = agent.address('metrics');
  replace(file, (text) =>
    text.replace('admin: {listenAddress: 127.0.0.1:0}', `admin: {listenAddress: ${taken}}`),
  );
  await until('the failure shows', async () => (await value(taken, reloadOk)) === 0);
  expect((await fetch(`http://${agent.address('admin')}/ready`)).status).toBe(200);
});

test('a role that is deselected keeps its totals for when it is selected again', async () => {
  const { file, writer, address } = await startFollowing('  worker: {}\n');
  writer.write(200);
  await until('200 lines', async () => (await value(address, entries)) === 200);
  const before = readFileSync(file, 'utf8');
  replace(file, (text) => `roles: [worker]\n${text}`);
  await until(
    'history is not shown',
    async () =>
      (await value(
        agent!.address('metrics'),
        /^svc_log_bytes_total\{.*svc_service="history".*\} (\S+)$/gm,
      )) === undefined,
  );
  writer.write(100);
  replace(file, () => before);
  await until('300 lines', async () => (await value(agent!.address('metrics'), entries)) === 300);
});

test('a reporter that is replaced during an outage leaves no queue and no last success on the page', async () => {
  let answer = 204;
  const port = await serving((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(answer, { 'X-Prometheus-Remote-Write-Samples-Written': '1' }).end();
    });
  });
  const directory = newFolder();
  const hosted = `hostedmetrics: {protocol: remotewrite, endpoint: 'http://127.0.0.1:${port}/'}`;
  const file = agentFile(directory);
  const pull = /pullmetrics: .*/;
  replace(file, (text) => text.replace(pull, hosted));
  agent = await startAgent(file);
  const address = agent.address('admin');
  const shown = (name: string) => value(address, new RegExp(`^svc_agent_${name}(?:\\{.*\\})? (\\S+)$`, 'gm'));
  await until('a report arrives', async () => (await shown('report_last_success_timestamp_seconds'))! > 0);
  answer = 503;
  await until('reports wait', async () => (await shown('queue_oldest_timestamp_seconds'))! > 0);
  replace(file, (text) => text.replace(hosted, 'pullmetrics: {listenAddress: 127.0.0.1:0}'));
  await until('the listener', () => agent!.address('metrics') !== '');
  await until('nothing waits', async () => (await shown('queue_bytes')) === 0);
  expect(await shown('queue_oldest_timestamp_seconds')).toBeUndefined();
  expect(await shown('report_last_success_timestamp_seconds')).toBeUndefined();
});
