import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type RunningAgent, startAgent } from '../e2e/process.ts';
import { newFolder } from '../folder.ts';
import { serving } from '../serving.ts';
import { until } from '../until.ts';

/** A block gets another reporter while its receiver is down: the points that wait on disk are not forgotten in silence. */

let agent: RunningAgent | undefined;
afterEach(() => agent?.end());

const warning = 'points that were not delivered stay on disk';
const warnings = (output: string) =>
  output
    .split('\n')
    .filter((line) => line.includes(warning))
    .map((line) => JSON.parse(line) as { level: string; directory: string; points: number });

test('its queue is named with the points in it, once each time, and delivered if the block is back', async () => {
  const directory = newFolder();
  const file = join(directory, 'agent.yaml');
  let status = 503;
  let delivered = 0;
  const port = await serving((request, response) => {
    request.resume();
    if (status === 200) delivered += 1;
    response.writeHead(status).end();
  });
  const configure = (metrics: string) =>
    writeFileSync(
      file,
      `stateDirectory: ${join(directory, 'state')}\nroles: [history]\nservices: {history: {logs: {paths: [${join(directory, 'none.log')}]}}}\nadmin: {listenAddress: 127.0.0.1:0}\nmetrics: ${metrics}\n`,
    );
  const hosted = `{reportingInterval: 1s, hostedmetrics: {protocol: remotewrite, endpoint: http://127.0.0.1:${port}/write}}`;
  const pull = '{pullmetrics: {listenAddress: 127.0.0.1:0}}';
  mkdirSync(join(directory, 'state', 'hosted-empty'), { recursive: true });
  writeFileSync(join(directory, 'state', 'hosted-note'), 'of somebody else');

  configure(hosted);
  agent = await startAgent(file);
  const isQueued = async () => {
    const report = await (await fetch(`http://${agent!.address('admin')}/api/status`)).json();
    return (report as { reporters: { queueBytes?: number }[] }).reporters[0]?.queueBytes;
  };
  await until('a batch waits', isQueued);
  expect(warnings(agent.output())).toEqual([]);

  configure(pull);
  await until('the reload is told', () => warnings(agent!.output()).length > 0);
  configure(hosted);
  await until('the block sends again', isQueued);
  configure(pull);
  await until('the next one is told, too', () => warnings(agent!.output()).length === 2);
  await agent.end();
  agent = await startAgent(file);
  const queue = join(directory, 'state', 'hosted-metrics');
  expect(warnings(agent.output())).toEqual([
    expect.objectContaining({ level: 'warn', directory: queue, points: expect.any(Number) }),
  ]);
  expect(warnings(agent.output())[0]!.points).toBeGreaterThan(0);
  await agent.end();

  status = 200;
  configure(hosted);
  agent = await startAgent(file);
  await until('it is delivered', () => delivered > 0);
  await until('nothing waits', async () => (await isQueued()) === 0);
  await agent.end();
  configure(pull);
  agent = await startAgent(file);
  expect(warnings(agent.output())).toEqual([]);
});
