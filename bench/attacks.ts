/**
 * Measures what honest clients notice while hostile senders fill every limit: an agent with the image's flags, one honest role
 * whose page is scraped every 5 s, and one attack after the other. For each attack it prints the longest and the 99th percentile
 * of the time for `/health` and for the scrape of the honest role, the maximum age of the honest role's value, and the agent's
 * peak memory. `npm run bench -- attacks [SECONDS] [ATTACK]`, default 40 s for each attack; ATTACK is a word in the name of an
 * attack.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { numberAt, textAt } from './arguments.ts';
import { configIn, hasEnded, newPlace, pause, root, serve, startAgent, usageOf } from './process.ts';

const seconds = numberAt(0, 'SECONDS', 40);
const flags = JSON.parse(
  `[${/^ENTRYPOINT \["\/nodejs\/bin\/node", (.*), "\/app/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))![1]}]`,
) as string[];

const numbered = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join('');
const families = (count: number) =>
  numbered(count, (n) => `# HELP m${n} Number ${n}.\n# TYPE m${n} gauge\nm${n}{a="b"} ${n}\n`);
const histograms = (count: number) =>
  numbered(count, (n) => {
    const lines = ['0.1', '1', '10', '+Inf'].map((le) => `h${n}_bucket{le="${le}"} 1\n`).join('');
    return `# TYPE h${n} histogram\n${lines}h${n}_sum 1\nh${n}_count 1\n`;
  });

/** Pages by hostile role, what is sent over TCP, a log, clients that hold connections, and further roles, which are down. */
interface Attack {
  pages?: readonly string[];
  statsd?: string;
  log?: string;
  clients?: number;
  roles?: number;
}

const attacks: Readonly<Record<string, () => Attack>> = {
  none: () => ({}),
  'families on a page': () => ({ pages: [families(60_000)] }),
  'histograms on a page': () => ({ pages: [histograms(65_000)] }),
  // The page has sums of histograms whose buckets are missing.
  'sums on a page': () => ({
    pages: [numbered(150_000, (n) => `# TYPE s${n} histogram\ns${n}_sum 1\n`)],
  }),
  // The lines of a histogram are not next to each other.
  'histograms in pieces': () => ({
    pages: [
      numbered(65_000, (n) => `# TYPE h${n} histogram\n`) +
        numbered(65_000, (n) => `h${n}_bucket{le="1"} 1\nh${n}_bucket{le="+Inf"} 1\n`) +
        numbered(65_000, (n) => `h${n}_count 1\nh${n}_sum 1\n`),
    ],
  }),
  'values on a page': () => ({
    pages: [`# TYPE calls counter\n${numbered(100_000, (n) => `calls{workflow="w-${n}"} 1\n`)}`],
  }),
  'four pages': () => ({
    pages: [0, 1, 2, 3].map(
      (role) =>
        `# TYPE calls${role} counter\n${numbered(400_000, (n) => `calls${role}{workflow="w-${n}"} 1\n`)}`,
    ),
  }),
  'statsd names': () => ({ statsd: numbered(94_000, (n) => `name_${n}:1|c\n`) }),
  'statsd tags': () => ({ statsd: numbered(200_000, (n) => `calls:1|c|#client:c${n}\n`) }),
  'labels in a log': () => ({
    log: numbered(200_000, (n) => `{"level":"info","logger":"l-${n}","customer":"c-${n}"}\n`),
  }),
  clients: () => ({ clients: 300 }),
  // Not hostile, but as large: each role has 50 series of the agent's own.
  'a thousand roles': () => ({ roles: 1_000 }),
  everything: () => ({
    pages: [families(60_000), histograms(65_000)],
    statsd:
      numbered(94_000, (n) => `name_${n}:1|c\n`) + numbered(200_000, (n) => `calls:1|c|#client:c${n}\n`),
    log: numbered(200_000, (n) => `{"level":"info","logger":"l-${n}","customer":"c-${n}"}\n`),
    clients: 300,
  }),
};

/** The time until the whole response has arrived, or until the request fails. */
function timed(url: string): Promise<{ ms: number; text: string }> {
  const startMs = performance.now();
  return new Promise((resolve) => {
    let text = '';
    const end = () => resolve({ ms: performance.now() - startMs, text });
    get(url, { agent: false }, (response) => {
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response.on('close', end);
    }).on('error', end);
  });
}

/** Repeats a request, with a pause between two requests, until `isEnded`. */
async function ask(url: string, isEnded: () => boolean, take: (text: string) => void): Promise<number[]> {
  const tookMs: number[] = [];
  while (!isEnded()) {
    const { ms, text } = await timed(url);
    tookMs.push(ms);
    take(text);
    await pause(200);
  }
  return tookMs.sort((a, b) => a - b);
}

function show(tookMs: readonly number[]): string {
  const p99 = tookMs[Math.floor(0.99 * (tookMs.length - 1))] ?? Number.NaN;
  return `${p99.toFixed(0).padStart(5)} ${(tookMs.at(-1) ?? Number.NaN).toFixed(0).padStart(6)}`;
}

async function play(name: string, attack: Attack): Promise<void> {
  const { pages = [], statsd, log = '', clients = 0, roles = 0 } = attack;
  const place = newPlace('attacks');
  const logFile = join(place, 'history.log');
  writeFileSync(logFile, log);
  const begunMs = performance.now();
  const now = () => (performance.now() - begunMs) / 1e3;
  const honest = await serve((_request, response) =>
    response.end(`# TYPE honest_seconds gauge\nhonest_seconds ${now()}\n`),
  );
  const hostile = await Promise.all(pages.map((page) => serve((_request, response) => response.end(page))));
  const scrape = (port: number, timing: string) => `{url: 'http://127.0.0.1:${port}/metrics', ${timing}}`;
  const services = hostile.map(
    (port, n) => `  hostile${n}: {scrape: ${scrape(port, 'interval: 10s, timeout: 10s')}}\n`,
  );
  const config = configIn(
    place,
    `admin: {listenAddress: 127.0.0.1:0}
services:
  frontend: {scrape: ${scrape(honest, 'interval: 5s, timeout: 5s')}}
  history:
    statsd: {tcp: 127.0.0.1:0}
    logs:
      paths: [${logFile}]
      startAt: beginning
      rules: [{name: by_customer, type: counter, match: {level: info}, labels: {customer: customer}}]
${services.join('')}${numbered(roles, (n) => `  role-${n}: {health: 'http://127.0.0.1:9/health'}\n`)}`,
  );
  const { child, output, address } = await startAgent(config, {
    flags,
    env: { ...process.env, MALLOC_MMAP_THRESHOLD_: '262144' },
  });
  const sockets: Socket[] = [];
  const open = (listener: string) => {
    const [, host, port] = /^(.*):(\d+)$/.exec(address(listener))!;
    const socket = connect(Number(port), host).on('error', () => {});
    sockets.push(socket);
    return socket.resume();
  };
  if (statsd) open('services.history.statsd.tcp').write(statsd);
  for (let n = 0; n < clients; n++) open('metrics').write('GET /metrics HTTP/1.1\r\nHost: a\r\nX: ');
  const endMs = performance.now() + seconds * 1000;
  const isEnded = () => performance.now() > endMs || hasEnded(child);
  let oldest = 0;
  const base = `http://${address('metrics')}`;
  const [health, scraped] = await Promise.all([
    ask(`${base}/health`, isEnded, () => {}),
    ask(`${base}/metrics?service=frontend`, isEnded, (text) => {
      const value = /^honest_seconds\{.*\} (\S+)$/m.exec(text)?.[1];
      oldest = Math.max(oldest, now() - Number(value ?? 0));
    }),
  ]);
  const peak = hasEnded(child)
    ? `the agent ended by ${child.signalCode ?? child.exitCode}: ${output().slice(-2000)}`
    : `${usageOf(child.pid!).peakMiB.toFixed(0)} MiB`;
  console.log(
    `${name.padEnd(22)}${show(health)}  ${show(scraped)}  ${oldest.toFixed(1).padStart(6)}  ${peak}`,
  );
  for (const socket of sockets) socket.destroy();
  child.kill('SIGKILL');
  rmSync(place, { recursive: true, force: true });
}

console.log(`${''.padEnd(22)}health, ms   scrape, ms   oldest  peak`);
console.log(`${''.padEnd(22)}  p99    max    p99    max     s`);
for (const [name, attack] of Object.entries(attacks))
  if (name.includes(textAt(1) ?? '')) await play(name, attack());
