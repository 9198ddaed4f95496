/**
 * Measures what hanging probes cost a scrape: two agents read the same log, and one of them has ten probes whose targets accept
 * connections and send nothing; the two are scraped in turns. `npm run bench -- probes [SCRAPES]`, default 2,000 of each.
 */
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { numberAt } from './arguments.ts';
import { sumOn } from './figures.ts';
import { logLines } from './lines.ts';
import { configIn, listening, newPlace, pause, startAgent, usageOf } from './process.ts';

const scrapes = numberAt(0, 'SCRAPES', 2_000);
const probeCount = 10;
const place = newPlace('probes');
const sockets = new Set<Socket>();
const port = await listening(createServer((socket) => sockets.add(socket.on('error', () => {}))));

interface Peer {
  pid: number;
  metrics: string;
  agent: Agent;
  tookMs: number[];
}

async function startPeer(name: string, services: string): Promise<Peer> {
  const config = configIn(
    join(place, name),
    `admin: {listenAddress: 127.0.0.1:0}
services:
  history: {logs: {paths: [${join(place, 'history.log')}], startAt: beginning}}
${services}`,
  );
  const { pid, address } = await startAgent(config);
  return {
    pid,
    metrics: `http://${address('metrics')}/metrics`,
    agent: new Agent({ keepAlive: true }),
    tookMs: [],
  };
}

function scrape({ metrics, agent, tookMs }: Peer): Promise<string> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    get(metrics, { agent }, (response) => {
      let page = '';
      response.setEncoding('utf8').on('data', (text: string) => (page += text));
      response.on('end', () => {
        tookMs.push(performance.now() - startMs);
        resolve(page);
      });
    }).on('error', reject);
  });
}

const quantile = (sorted: readonly number[], q: number) => sorted[Math.floor(q * (sorted.length - 1))]!;

function report(name: string, { tookMs, pid }: Peer): number {
  const sorted = [...tookMs].sort((a, b) => a - b);
  const [p50, p99] = [quantile(sorted, 0.5), quantile(sorted, 0.99)];
  const { cpuSeconds, residentMiB } = usageOf(pid);
  console.log(
    `${name.padEnd(16)} p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, worst ${sorted.at(-1)!.toFixed(1)} ms; ` +
      `${cpuSeconds.toFixed(2)} CPU s, resident ${residentMiB.toFixed(1)} MiB`,
  );
  return p99;
}

writeFileSync(join(place, 'history.log'), logLines('flat', 5_000, 1));
const hanging = Array.from(
  { length: probeCount },
  (_, n) => `  hangs${n}: {health: {url: "http://127.0.0.1:${port}/health", interval: 2s, timeout: 2s}}\n`,
).join('');
const [without, withHanging] = [await startPeer('without', ''), await startPeer('hanging', hanging)];
const peers = [without, withHanging];
while (sockets.size < probeCount) await pause(50);
for (let n = 0; n < 200; n++) for (const peer of peers) await scrape(peer);
for (const peer of peers) peer.tookMs.length = 0;
for (let n = 0; n < scrapes; n++) for (const peer of peers) await scrape(peer);
const page = await scrape(withHanging);
const hung = sumOn(page, 'svc_role_health_failures_total\\{.*reason="first_byte_timeout".*\\}');
console.log(`${hung} checks hung until their timeout`);
const [before, after] = [report('without probes', without), report('ten that hang', withHanging)];
console.log(`ratio            ${(after / before).toFixed(2)} of the p99 without probes`);
