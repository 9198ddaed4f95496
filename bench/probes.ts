/**
 * Measures what hanging probes cost a scrape: two agents read the same log, and one of them has ten probes whose targets accept
 * connections and send nothing; the two are scraped in turns. `npm run bench -- probes [SCRAPES]`, default 2,000 of each.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { numberAt } from './arguments.ts';
import { logLines } from './lines.ts';
import { pause, startAgent, usageOf } from './process.ts';

const scrapes = numberAt(0, 'SCRAPES', 2_000);
const probeCount = 10;
const agentMain = join(process.env.SVC_AGENT_ROOT ?? '.', 'dist', 'main.js');
const place = mkdtempSync(join(tmpdir(), 'svc-agent-probes-'));
const sockets = new Set<Socket>();
const silent = createServer((socket) => sockets.add(socket.on('error', () => {})));

interface Peer {
  child: ChildProcess;
  metrics: string;
  agent: Agent;
  tookMs: number[];
}

async function startPeer(name: string, services: string): Promise<Peer> {
  const own = join(place, name);
  mkdirSync(own);
  const file = join(own, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${join(own, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
services:
  history: {logs: {paths: [${join(place, 'history.log')}], startAt: beginning}}
${services}`,
  );
  const { child, address } = await startAgent(agentMain, file);
  return {
    child,
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

function report(name: string, { tookMs, child }: Peer): number {
  const sorted = [...tookMs].sort((a, b) => a - b);
  const [p50, p99] = [quantile(sorted, 0.5), quantile(sorted, 0.99)];
  const { cpuSeconds, residentMiB } = usageOf(child.pid!);
  console.log(
    `${name.padEnd(16)} p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms, worst ${sorted.at(-1)!.toFixed(1)} ms; ` +
      `${cpuSeconds.toFixed(2)} CPU s, resident ${residentMiB.toFixed(1)} MiB`,
  );
  return p99;
}

const peers: Peer[] = [];
try {
  writeFileSync(join(place, 'history.log'), logLines('flat', 5_000, 1));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as AddressInfo;
  const hanging = Array.from(
    { length: probeCount },
    (_, n) => `  hangs${n}: {health: {url: "http://127.0.0.1:${port}/health", interval: 2s, timeout: 2s}}\n`,
  ).join('');
  peers.push(await startPeer('without', ''), await startPeer('hanging', hanging));
  const [without, withHanging] = peers as [Peer, Peer];
  while (sockets.size < probeCount) await pause(50);
  for (let n = 0; n < 200; n++) for (const peer of peers) await scrape(peer);
  for (const peer of peers) peer.tookMs.length = 0;
  for (let n = 0; n < scrapes; n++) for (const peer of peers) await scrape(peer);
  const page = await scrape(withHanging);
  const hung = [
    ...page.matchAll(/^svc_role_health_failures_total\{.*reason="first_byte_timeout".*\} (\d+)$/gm),
  ];
  console.log(`${hung.reduce((sum, [, count]) => sum + Number(count), 0)} checks hung until their timeout`);
  const [before, after] = [report('without probes', without), report('ten that hang', withHanging)];
  console.log(`ratio            ${(after / before).toFixed(2)} of the p99 without probes`);
} finally {
  for (const { child, agent } of peers) {
    agent.destroy();
    child.kill('SIGKILL');
  }
  for (const socket of sockets) socket.destroy();
  silent.close();
  rmSync(place, { recursive: true, force: true });
}
