import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sumOn } from '../page-sum.ts';
import { folder } from '../run-folder.ts';
import { serving } from '../serving.ts';
import { bySize } from '../size.ts';
import { atTestEnd } from '../test-end.ts';
import { until } from '../until.ts';
import { mainFile, type Running, start } from './process.ts';

const limit = 2000;
const allowedMiB = 30;
/** 40 rounds are ten minutes at an interval of 15 s. */
const rounds = bySize({ short: 3, long: 40, nightly: 240 });

/** The number of values of one tag. */
const values = bySize({ short: 100_000, long: 1_000_000, nightly: 10_000_000 });

/** The flags of the image. Without them the young generation alone is as large as what is measured. */
const imageFlags = [
  ...['--max-semi-space-size=1', '--optimize-for-size', '--v8-pool-size=1'],
  '--max-old-space-size=128',
];

interface Agent extends Running {
  address(listener: string): string;
  anonymousMiB(): number;
}

async function startAgent(service: string): Promise<Agent> {
  const place = folder();
  atTestEnd(() => place.remove());
  const config = join(place.path, 'agent.yaml');
  writeFileSync(
    config,
    `stateDirectory: ${join(place.path, 'state')}
limits: {seriesPerMetric: ${limit}}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: ~
services: {history: ${service}}
`,
  );
  const running = start(process.execPath, [...imageFlags, mainFile, 'run', '-c', config]);
  atTestEnd(() => running.end());
  await until('the agent is ready', () => running.output().includes('"msg":"ready"'));
  return {
    ...running,
    address(listener) {
      const pattern = new RegExp(`"listener":"${listener}","address":"([^"]+)"`);
      return pattern.exec(running.output())![1]!;
    },
    anonymousMiB() {
      const status = readFileSync(`/proc/${running.child.pid}/status`, 'utf8');
      return Number(/RssAnon:\s+(\d+)/.exec(status)![1]) / 1024;
    },
  };
}

/** Sends every series once more, increased by one. */
type SendRound = () => Promise<void> | void;

/**
 * Plays the rounds of ten minutes, as fast as the agent accepts them. After each, the counter's series and the overflow series
 * add up to all that was sent. Returns the private memory, MiB.
 */
async function hold(agent: Agent, name: string, count: number, sendRound: SendRound): Promise<number> {
  const url = `http://${agent.address('metrics')}/metrics`;
  for (let round = 1; round <= rounds; round++) {
    await sendRound();
    const total = round * count;
    await until(`${name} adds up to ${total}`, async () => (await sumOn(url, name)) === total);
  }
  return agent.anonymousMiB();
}

const feeds: [string, (count: number) => Promise<number>][] = [
  [
    'a page',
    async (count) => {
      let round = 1;
      const port = await serving((_request, response) => {
        const lines = Array.from({ length: count }, (_, n) => `requests{client="client-${n}"} ${round}\n`);
        response.end(`# TYPE requests counter\n${lines.join('')}`);
      });
      const agent = await startAgent(
        `{scrape: {url: 'http://127.0.0.1:${port}/metrics', interval: 1s, timeout: 1s}}`,
      );
      let isFirst = true;
      return hold(agent, 'requests', count, () => {
        if (!isFirst) round += 1;
        isFirst = false;
      });
    },
  ],
  [
    'statsd',
    async (count) => {
      const agent = await startAgent('{statsd: {tcp: 127.0.0.1:0}}');
      const [, host, port] = /^(.*):(\d+)$/.exec(agent.address('services.history.statsd.tcp'))!;
      const socket = connect(Number(port), host);
      atTestEnd(() => socket.destroy());
      const lines = Array.from({ length: count }, (_, n) => `requests:1|c|#client:c${n}\n`).join('');
      return hold(agent, 'requests', count, () => void socket.write(lines));
    },
  ],
  [
    'a log',
    async (count) => {
      const place = folder();
      atTestEnd(() => place.remove());
      const log = join(place.path, 'history.log');
      const lines = Array.from({ length: count }, (_, n) => `{"level":"info","logger":"shard-${n}"}\n`);
      writeFileSync(log, '');
      const agent = await startAgent(`{logs: {paths: [${log}], startAt: beginning}}`);
      return hold(agent, 'svc_log_entries_total', count, () => appendFileSync(log, lines.join('')));
    },
  ],
];

test.each(feeds)(
  'ten times the limit of series in %s, round after round, takes little more memory than the limit',
  async (_, feed) => {
    const atLimit = await feed(limit);
    const atTenTimes = await feed(10 * limit);
    expect(atTenTimes - atLimit).toBeLessThan(allowedMiB);
  },
);

test(`${values} values of a tag over TCP take less than 30 MiB above the idle agent`, async () => {
  const agent = await startAgent('{statsd: {tcp: 127.0.0.1:0}}');
  const [, host, port] = /^(.*):(\d+)$/.exec(agent.address('services.history.statsd.tcp'))!;
  const url = `http://${agent.address('metrics')}/metrics`;
  const sum = () => sumOn(url, 'requests');
  expect(await sum()).toBe(0);
  const idle = agent.anonymousMiB();
  const socket = connect(Number(port), host);
  atTestEnd(() => socket.destroy());
  let most = 0;
  const total = values;
  for (let n = 0; n < total; n += 1000) {
    const lines = Array.from({ length: 1000 }, (_, i) => `requests:1|c|#client:c${n + i}\n`);
    if (socket.write(lines.join(''))) continue;
    await new Promise((resolve) => socket.once('drain', resolve));
    most = Math.max(most, agent.anonymousMiB());
  }
  await until('all of them are shown', async () => (await sum()) === total);
  expect(Math.max(most, agent.anonymousMiB()) - idle).toBeLessThan(allowedMiB);
});
