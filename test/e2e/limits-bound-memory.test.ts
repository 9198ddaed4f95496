import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { folder, mainFile, type Running, start, until } from './process.ts';

/** The flags of the shipped systemd unit that bound the garbage collector's young generation. */
const flags = ['--max-semi-space-size=1', '--optimize-for-size', '--v8-pool-size=1'];
const limit = 2000;
const allowedMiB = 30;

const ends: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

interface Agent extends Running {
  address(listener: string): string;
  anonymousMiB(): number;
}

async function startAgent(service: string): Promise<Agent> {
  const place = folder();
  ends.push(() => place.remove());
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
  const running = start(process.execPath, [...flags, mainFile, 'run', '-c', config]);
  ends.push(() => running.end());
  await until('the agent is ready', () => running.output().includes('"msg":"ready"') || undefined);
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

/** Waits until the counter's series, with the overflow series, add up to the total; then some scrapes more. */
async function holds(agent: Agent, name: string, total: number): Promise<number> {
  const url = `http://${agent.address('metrics')}/metrics`;
  const sum = async () => {
    const text = await (await fetch(url)).text();
    const values = text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'));
    return [...values].reduce((all, [, value]) => all + Number(value), 0);
  };
  await until(`${name} adds up to ${total}`, async () => (await sum()) === total || undefined, 60_000);
  for (let scrape = 0; scrape < 5; scrape++) {
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    expect(await sum()).toBe(total);
  }
  return agent.anonymousMiB();
}

const feeds: [string, (count: number) => Promise<number>][] = [
  [
    'a page',
    async (count) => {
      const lines = Array.from({ length: count }, (_, n) => `requests{client="client-${n}"} 1\n`);
      const body = `# TYPE requests counter\n${lines.join('')}`;
      const server = createServer((_request, response) => response.end(body));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      ends.push(() => {
        server.closeAllConnections();
        server.close();
      });
      const { port } = server.address() as AddressInfo;
      const agent = await startAgent(`{scrape: {url: 'http://127.0.0.1:${port}/metrics', timeout: 5s}}`);
      return holds(agent, 'requests', count);
    },
  ],
  [
    'statsd',
    async (count) => {
      const agent = await startAgent('{statsd: {tcp: 127.0.0.1:0}}');
      const [, host, port] = /^(.*):(\d+)$/.exec(agent.address('services.history.statsd.tcp'))!;
      const socket = connect(Number(port), host);
      ends.push(() => socket.destroy());
      for (let n = 0; n < count; n++) socket.write(`requests:1|c|#client:c${n}\n`);
      return holds(agent, 'requests', count);
    },
  ],
  [
    'a log',
    async (count) => {
      const place = folder();
      ends.push(() => place.remove());
      const log = join(place.path, 'history.log');
      const lines = Array.from({ length: count }, (_, n) => `{"level":"info","logger":"shard-${n}"}\n`);
      writeFileSync(log, lines.join(''));
      const agent = await startAgent(`{logs: {paths: [${log}], startAt: beginning}}`);
      return holds(agent, 'svc_log_entries_total', count);
    },
  ],
];

test.each(feeds)(
  'ten times the limit of series in %s takes little more memory than the limit',
  async (_, feed) => {
    const atLimit = await feed(limit);
    const atTenTimes = await feed(10 * limit);
    expect(atTenTimes - atLimit).toBeLessThan(allowedMiB);
  },
  180_000,
);
