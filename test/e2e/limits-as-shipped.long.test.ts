import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { newFolder } from '../folder.ts';
import { serving } from '../serving.ts';
import { bySize } from '../size.ts';
import { until } from '../until.ts';
import { writeAgentFile } from './agent-file.ts';
import { mainFile, start } from './process.ts';

/** The limit for the agent. A fifth of a pod of 256 MiB is left for everything else. */
const mostMiB = 200;

/** The flags with which the image starts Node. */
const shippedFlags = /^ENTRYPOINT \["\/nodejs\/bin\/node", (.*), "\/app/m
  .exec(readFileSync('Dockerfile', 'utf8'))![1]!
  .split(', ')
  .map((flag) => JSON.parse(flag) as string);

const numbered = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join('');

/** What a hostile sender sends: a page, lines of statsd over TCP, and a log. */
interface Hostile {
  page?: string;
  statsd?: string;
  log?: string;
  /** The increases that the agent must show, one by one or in overflow series, by the beginning of the names. */
  sums?: Readonly<Record<string, number>>;
  /** Whether there is more than the limits allow. */
  isRefused: boolean;
  /** Whether clients hold every listener's connections, too. */
  hasClients?: true;
  /** The page of another role. */
  otherPage?: string;
}

const buckets = ['0.1', '1', '10', '+Inf'];
const hostile: Readonly<Record<string, Hostile>> = {
  '60,000 families on a page': {
    page: numbered(60_000, (n) => `# HELP m${n} Number ${n}.\n# TYPE m${n} gauge\nm${n}{a="b"} ${n}\n`),
    isRefused: true,
  },
  '94,000 names over statsd': { statsd: numbered(94_000, (n) => `name_${n}:1|c\n`), isRefused: true },
  '200,000 values of a label in a log': {
    log: numbered(200_000, (n) => `{"level":"info","logger":"l-${n}","customer":"c-${n}"}\n`),
    sums: { svc_log_entries_total: 200_000, by_customer: 200_000 },
    isRefused: true,
  },
  '100,000 ids in a log': {
    log: numbered(
      100_000,
      (n) => `{"level":"info","customer":"12345678-1234-1234-1234-${String(n).padStart(12, '0')}"}\n`,
    ),
    sums: { svc_log_entries_total: 100_000, by_customer: 100_000 },
    isRefused: false,
  },
  '200,000 values of a tag over statsd': {
    statsd: numbered(200_000, (n) => `calls:1|c|#client:c${n}\n`),
    sums: { calls: 200_000 },
    isRefused: true,
  },
  '100,000 ids on a page': {
    page: `# TYPE calls counter\n${numbered(100_000, (n) => `calls{workflow_id="w-${n}"} 1\n`)}`,
    sums: { calls: 100_000 },
    isRefused: true,
  },
  '25,000 values of a kilobyte': {
    page: `# TYPE calls counter\n${numbered(25_000, (n) => `calls{text="${'x'.repeat(1000)}${n}"} 1\n`)}`,
    sums: { calls: 25_000 },
    isRefused: true,
  },
  '20,000 families of histograms': {
    page: numbered(20_000, (n) => {
      const lines = buckets.map((le) => `h${n}_bucket{le="${le}"} 1\n`).join('');
      return `# TYPE h${n} histogram\n${lines}h${n}_sum 1\nh${n}_count 1\n`;
    }),
    isRefused: false,
  },
};
const everything: Hostile = {
  page: hostile['60,000 families on a page']!.page!,
  statsd:
    hostile['94,000 names over statsd']!.statsd! + hostile['200,000 values of a tag over statsd']!.statsd!,
  log: hostile['200,000 values of a label in a log']!.log!,
  sums: { svc_log_entries_total: 200_000, by_customer: 200_000 },
  isRefused: true,
  hasClients: true,
};
/** This is more than 200 MiB at once, but less than a pod has. */
const everythingOfTwo: Hostile = {
  ...everything,
  otherPage: numbered(65_000, (n) => {
    const lines = buckets.map((le) => `h${n}_bucket{le="${le}"} 1\n`).join('');
    return `# TYPE h${n} histogram\n${lines}h${n}_sum 1\nh${n}_count 1\n`;
  }),
};
const single = Object.entries(hostile);

const honestLine = 'honest_total{svc_service="frontend"} 5';

/** Serves a page; while it is undefined, the target is down. */
const servePage = (page: () => string | undefined): Promise<number> =>
  serving((_request, response) => {
    const text = page();
    response.writeHead(text === undefined ? 503 : 200).end(text);
  });

const clientsOfEach = 300;
/** Requests and lines without an end: half a header, headers and a body without an end, and a line without an end. */
const unending: Readonly<Record<string, readonly string[]>> = {
  metrics: ['GET /metrics HTTP/1.1\r\nHost: a\r\nX: ', `GET / HTTP/1.1\r\n${'X: y\r\n'.repeat(10_000)}`],
  admin: ['', `POST /event HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n${'x'.repeat(1e6)}`],
  'services.history.statsd.tcp': ['x'.repeat(60_000)],
};

/** Clients that send requests without an end to every listener, and do not close their connections. */
async function holdConnections(address: (listener: string) => string): Promise<void> {
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
  for (const [listener, texts] of Object.entries(unending)) {
    const [, host, port] = /^(.*):(\d+)$/.exec(address(listener))!;
    for (let n = 0; n < clientsOfEach; n++) {
      const socket = connect(Number(port), host);
      sockets.push(socket);
      // The agent may close or refuse the connection.
      await new Promise<void>((resolve) => socket.on('error', () => resolve()).on('connect', resolve));
      socket.resume().write(texts[n % texts.length]!);
    }
  }
}

/** Starts the agent as the image does. */
async function startShipped(config: string, moreFlags: readonly string[] = []) {
  const running = start(process.execPath, [...shippedFlags, ...moreFlags, mainFile, 'run', '-c', config]);
  onTestFinished(() => void running.end('SIGKILL'));
  await until('the agent is ready', () => running.output().includes('"msg":"ready"'));
  const address = (listener: string) =>
    new RegExp(`"listener":"${listener}","address":"([^"]+)"`).exec(running.output())![1]!;
  return {
    address,
    running,
    metrics: async () => (await fetch(`http://${address('metrics')}/metrics`)).text(),
    peakMiB() {
      const status = readFileSync(`/proc/${running.child.pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+)/.exec(status)![1]) / 1024;
    },
  };
}

async function startAgent({ page = '', log = '', otherPage }: Hostile) {
  let honestPage: string | undefined;
  const place = newFolder();
  const logFile = join(place, 'history.log');
  writeFileSync(logFile, log);
  const scrape = (port: number, everyS = 30) =>
    `{url: 'http://127.0.0.1:${port}/metrics', interval: ${everyS}s, timeout: ${everyS}s}`;
  const config = writeAgentFile(
    place,
    `services:
  frontend: {scrape: ${scrape(await servePage(() => honestPage), 10)}}
  history:
    scrape: ${scrape(await servePage(() => page))}
    statsd: {tcp: 127.0.0.1:0}
    logs:
      paths: [${logFile}]
      startAt: beginning
      rules: [{name: by_customer, type: counter, match: {level: info}, labels: {customer: customer}}]
${otherPage ? `  matching: {scrape: ${scrape(await servePage(() => otherPage))}}\n` : ''}`,
  );
  return {
    ...(await startShipped(config)),
    startHonestRole() {
      honestPage = '# TYPE honest_total counter\nhonest_total 5\n';
    },
  };
}

/** A page of all that is held takes the processor from what is waited for. */
const patience = { everyMs: 1_000 };

function sumOf(text: string, name: string): number {
  const values = [...text.matchAll(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'gm'))];
  return values.reduce((sum, [, value]) => sum + Number(value), 0);
}

async function holds(sent: Hostile, withinMiB = mostMiB) {
  const agent = await startAgent(sent);
  const { statsd } = sent;
  if (statsd) {
    const [, host, port] = /^(.*):(\d+)$/.exec(agent.address('services.history.statsd.tcp'))!;
    const socket = connect(Number(port), host);
    await new Promise<void>((resolve, reject) => socket.on('error', reject).on('connect', resolve));
    // The connection was there before those of the hostile clients.
    if (sent.hasClients) await holdConnections(agent.address);
    await new Promise<void>((resolve) => socket.end(statsd, () => resolve()));
  }
  await until(
    'all sums are shown',
    async () => {
      const text = await agent.metrics();
      const isSummed = Object.entries(sent.sums ?? {}).every(([name, sum]) => sumOf(text, name) === sum);
      const hasRefused = sumOf(text, 'svc_agent_series_refused_total') > 0;
      return isSummed && hasRefused === sent.isRefused;
    },
    patience,
  );
  // The honest role starts when there is no room any more.
  agent.startHonestRole();
  await until('the honest role is shown', async () => (await agent.metrics()).includes(honestLine), patience);
  // The page is read and shown again.
  for (let round = 0; round < 3; round++) expect(await agent.metrics()).toContain(honestLine);
  expect(agent.peakMiB()).toBeLessThan(withinMiB);
  expect(await agent.running.end()).toBe(0);
}

test.each(bySize({ short: [], long: single.slice(0, 2), nightly: single }))(
  'as the image starts it, the agent holds %s, and serves the honest role',
  async (_, sent) => {
    await holds(sent);
  },
);

test('as the image starts it, the agent holds all of it at once', async () => {
  await holds(everything);
});

test.each(bySize({ short: [], long: [], nightly: [everythingOfTwo] }))(
  'as the image starts it, the agent lives with the pages of two hostile roles and all else at once',
  async (sent) => {
    await holds(sent, Number.POSITIVE_INFINITY);
  },
);

test('as the image starts it, the agent holds 1,000 services with health checks', async () => {
  const port = await serving((_request, response) => void response.end('{"ok":true,"msg":""}'));
  const services = numbered(1_000, (n) => `  role-${n}: {health: 'http://127.0.0.1:${port}/health'}\n`);
  const agent = await startShipped(writeAgentFile(newFolder(), `services:\n${services}`));
  await until('all are healthy', async () => sumOf(await agent.metrics(), 'svc_role_up') === 1_000, patience);
  await (await fetch(`http://${agent.address('admin')}/api/status`)).json();
  expect(agent.peakMiB()).toBeLessThan(mostMiB);
  expect(await agent.running.end()).toBe(0);
});

test('a warning says that the heap is too small for so many sources', async () => {
  const sources = 'health: http://127.0.0.1:1/health, scrape: http://127.0.0.1:1/metrics';
  const services = `services: {history: {${sources}, statsd: {tcp: 127.0.0.1:0}}}\n`;
  const agent = await startShipped(writeAgentFile(newFolder(), services), ['--max-old-space-size=20']);
  expect(agent.running.output()).toMatch(
    /services: the heap of 2\d MiB is too small for .*, which need about 24 MiB.*, got 3; give the process more memory/,
  );
});

test('a limit that the heap cannot hold is lowered at start, with a warning that names both', async () => {
  const place = newFolder();
  const config = join(place, 'agent.yaml');
  writeFileSync(
    config,
    `stateDirectory: ${join(place, 'state')}
limits: {series: 1000000}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: ~
services: {history: {statsd: {tcp: 127.0.0.1:0}}}
`,
  );
  const { running } = await startShipped(config);
  const warning =
    /limits\.series: the heap of \d+ MiB has no room for so many series, so the limit is (\d+), got 1000000/;
  const [, inForce] = warning.exec(running.output())!;
  expect(Number(inForce)).toBeGreaterThanOrEqual(50_000);
  expect(Number(inForce)).toBeLessThan(100_000);
});
