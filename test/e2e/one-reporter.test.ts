import { createSocket } from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openReceiver } from '../hosted.ts';
import { metricsOf } from '../hosted-wire.ts';
import { freePort } from '../ports.ts';
import { folder } from '../run-folder.ts';
import { onlyLong, onlyShort, testOnce } from '../size.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { mainFile, type Running, start } from './process.ts';
import { hasPrometheus, queryAt } from './prometheus.ts';
import { hasVictoriaMetrics, startVictoriaMetrics } from './victoria-metrics.ts';

/** The built agent with one reporter, and neither an admin listener nor a source. */

const directory = folder();
let files = 0;

/** Starts the agent with this reporter alone. */
function startWith(reporter: string): Running {
  const name = `agent-${files++}`;
  const file = join(directory.path, `${name}.yaml`);
  const state = join(directory.path, name);
  writeFileSync(
    file,
    `stateDirectory: ${state}\nadmin: ~\nmetrics:\n  reportingInterval: 200ms\n  ${reporter}\n`,
  );
  const agent = start(process.execPath, [mainFile, 'run', '-c', file]);
  atTestEnd(() => agent.end('SIGKILL'));
  return agent;
}
/** Waits for a fact while the agent runs. */
async function whileRunning<T>(
  agent: Running,
  what: string,
  fact: () => Promise<T | undefined> | T | undefined,
) {
  const ended = agent.ended.then((status) => {
    throw new Error(`the agent ended with ${status} before ${what}: ${agent.output()}`);
  });
  ended.catch(() => {});
  return Promise.race([until(what, fact), ended]);
}

testOnce('pullmetrics: serves until it is told to stop', async () => {
  const address = `127.0.0.1:${await freePort()}`;
  const agent = startWith(`pullmetrics: {listenAddress: "${address}"}`);
  for (let scrape = 0; scrape < 3; scrape++) {
    const page = await whileRunning(agent, 'a page is served', async () => {
      const response = await fetch(`http://${address}/metrics`);
      return response.ok ? response.text() : undefined;
    });
    expect(page).toContain('svc_agent_build_info{');
  }
  expect(await agent.end()).toBe(0);
});

testOnce('pushmetrics: flushes until it is told to stop, and once more then', async () => {
  const received: string[] = [];
  const socket = createSocket('udp4', (datagram) => received.push(datagram.toString()));
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  const agent = startWith(`pushmetrics: {hostPort: "127.0.0.1:${socket.address().port}", tagFormat: none}`);
  const flushes = () => received.filter((datagram) => datagram.includes('svc_agent_build_info:1|g')).length;
  await whileRunning(agent, 'five flushes', () => flushes() >= 5);
  const before = flushes();
  expect(await agent.end()).toBe(0);
  await until('the last flush', () => flushes() > before);
  socket.close();
});

testOnce(
  'hostedmetrics, OTLP: the endpoint gets its path, reports arrive until it is told to stop',
  async () => {
    const receiver = await openReceiver();
    const { origin } = new URL(receiver.url);
    const agent = startWith(`hostedmetrics: {protocol: otlp, endpoint: "${origin}"}`);
    await whileRunning(agent, 'five reports', () => receiver.taken().length >= 5);
    expect(new Set(receiver.received.map(({ url }) => url))).toEqual(new Set(['/v1/metrics']));
    const names = receiver.taken().map((one) => metricsOf(one.resources()).map(({ name }) => name));
    expect(names[0]).toContain('svc_agent_build_info');
    expect(await agent.end()).toBe(0);
    await receiver.close();
  },
);

onlyShort(describe.skipIf(!hasPrometheus))('hostedmetrics, remote write to Prometheus', () => {
  test('series are there while it runs, and gauges end with it', async () => {
    const configFile = join(directory.path, 'prometheus.yml');
    writeFileSync(configFile, 'global: {}\n');
    const address = `127.0.0.1:${await freePort()}`;
    const prometheus = start('prometheus', [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(directory.path, 'tsdb')}`,
      `--web.listen-address=${address}`,
      '--web.enable-remote-write-receiver',
    ]);
    atTestEnd(() => prometheus.end('SIGKILL'));
    await until('Prometheus is ready', async () => (await fetch(`http://${address}/-/ready`)).ok);
    const query = queryAt(address);
    const agent = startWith(
      `hostedmetrics: {protocol: remotewrite, endpoint: "http://${address}/api/v1/write"}`,
    );
    await whileRunning(
      agent,
      'the gauge is there',
      async () => (await query('svc_agent_build_info')).length === 1,
    );
    await whileRunning(
      agent,
      'ten reports',
      async () => (await query('count_over_time(svc_agent_build_info[1m]) >= 10')).length === 1,
    );
    expect(await agent.end()).toBe(0);
    // Without a stale marker the gauge would stay for five minutes.
    await until('the gauge has ended', async () => (await query('svc_agent_build_info')).length === 0);
    expect((await query('count_over_time(svc_agent_build_info[1m])')).length).toBe(1);
  });
});

onlyLong(describe.skipIf(!hasVictoriaMetrics))('hostedmetrics, remote write to VictoriaMetrics', () => {
  test('series are there until it is told to stop', async () => {
    const victoria = await startVictoriaMetrics(directory.path);
    atTestEnd(() => victoria.end('SIGKILL'));
    const endpoint = `http://${victoria.address}/api/v1/write`;
    const agent = startWith(`hostedmetrics: {protocol: remotewrite, endpoint: "${endpoint}"}`);
    await whileRunning(
      agent,
      'the series are there',
      async () => (await victoria.query('svc_agent_build_info')).length === 1,
    );
    expect(await agent.end()).toBe(0);
  });
});
