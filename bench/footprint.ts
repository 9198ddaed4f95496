/**
 * Measures memory, idle CPU and time to ready of the agent, and of the installed peers with the same work, in one run: every
 * feature on, a SQL store, four logs and 5,000 scraped series. Memory is resident and private (`RssAnon`), including living
 * children. The agent is measured a second time while the status page is open: its document, its history and its stream of events
 * are read. `npm run bench -- footprint [SECONDS]`, default 20 s of rest. NODE names another node for the agent, AGENT_FLAGS
 * flags for it.
 */
import type { ChildProcess } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../test/ports.ts';
import { numberAt } from './arguments.ts';
import { logLines } from './lines.ts';
import {
  hasCommand,
  launch,
  newPlace,
  pause,
  root,
  serveSink,
  startAgent,
  type Usage,
  usageOf,
} from './process.ts';
import { type Surroundings, surround } from './surroundings.ts';

const restSeconds = numberAt(0, 'SECONDS', 20);
const place = newPlace('footprint');
const roles = ['frontend', 'history', 'matching', 'worker'];
const seriesCount = 5_000;
const logOf = (role: string) => join(place, `${role}.log`);

interface Footprint {
  residentMiB: number;
  privateMiB: number;
  peakMiB: number;
  idlePercent: number;
  readyMs?: number;
}

/** The usage of a process together with its living children. */
function familyOf(pid: number): Usage {
  const own = usageOf(pid);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  for (const child of children) {
    try {
      const { residentMiB, anonymousMiB } = familyOf(Number(child));
      own.residentMiB += residentMiB;
      own.anonymousMiB += anonymousMiB;
    } catch {
      // The process has ended meanwhile.
    }
  }
  return own;
}

/** Feeds every log once, waits until things settle, then measures a stretch in which only scrapes and probes happen. */
async function atRest(child: ChildProcess): Promise<Footprint> {
  for (const role of roles) appendFileSync(logOf(role), logLines('flat', 5_000, role.length));
  // The tailer scans often for some seconds after the last line.
  await pause(12_000);
  const before = usageOf(child.pid!);
  await pause(restSeconds * 1_000);
  const after = usageOf(child.pid!);
  const { residentMiB, anonymousMiB } = familyOf(child.pid!);
  child.kill('SIGKILL');
  return {
    residentMiB,
    privateMiB: anonymousMiB,
    peakMiB: after.peakMiB,
    idlePercent: ((after.cpuSeconds - before.cpuSeconds) / restSeconds) * 100,
  };
}

/**
 * Reads what a browser reads when it opens the status page, and continues to read its events. Returns a function that ends the
 * reading.
 */
async function openPage(admin: string): Promise<() => void> {
  const origin = `http://${admin}`;
  for (const path of ['/', '/page.js', '/page.css', '/api/status', '/api/history']) {
    const answer = await fetch(origin + path);
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
    await answer.arrayBuffer();
  }
  const end = new AbortController();
  const { body } = await fetch(`${origin}/api/events`, { signal: end.signal });
  const read = async () => {
    for await (const _ of body!);
  };
  read().catch(() => {});
  return () => end.abort();
}

async function agent(config: string, { isPageOpen }: { isPageOpen: boolean }): Promise<Footprint> {
  const begun = performance.now();
  const { child, address } = await startAgent(config);
  const readyMs = performance.now() - begun;
  const isCollected = async () => {
    const text = await fetch(`http://${address('metrics')}/metrics`).then((response) => response.text());
    return text.split('\n').length > seriesCount;
  };
  while (!(await isCollected())) await pause(500);
  const closePage = isPageOpen ? await openPage(address('admin')) : () => {};
  const footprint = await atRest(child);
  closePage();
  return { ...footprint, readyMs };
}

const text = (name: string, content: string): string => {
  const file = join(place, name);
  writeFileSync(file, content);
  return file;
};

/** A program that does a part of the agent's work. */
interface Peer {
  names: readonly string[];
  /** The arguments; undefined if there is no work for the peer. `listen` is the address on which it listens. */
  args(around: Surroundings, sink: string, listen: string): string[] | undefined;
  env?(around: Surroundings): Record<string, string>;
  /** The paths that Prometheus would scrape every 15 s: an exporter works only then. */
  scraped?(around: Surroundings): string[];
}

const peers: readonly Peer[] = [
  {
    names: ['mtail'],
    args: () => {
      const rules = 'counter entries by level\n/"level":"(?P<level>[a-z]+)"/ { entries[$level]++ }\n';
      const logs = roles.flatMap((role) => ['--logs', logOf(role)]);
      return ['--progs', text('svc.mtail', rules), ...logs, '--address', '127.0.0.1', '--port', '0'];
    },
  },
  {
    names: ['vmagent'],
    args: ({ pages }, sink) => {
      const jobs = pages.map((url, n) => {
        const { host, pathname } = new URL(url);
        return { job_name: `job${n}`, metrics_path: pathname, static_configs: [{ targets: [host] }] };
      });
      const config = { global: { scrape_interval: '15s' }, scrape_configs: jobs };
      return [
        `-promscrape.config=${text('vmagent.yml', JSON.stringify(config))}`,
        `-remoteWrite.url=${sink}`,
        `-remoteWrite.tmpDataPath=${join(place, 'vmagent')}`,
        '-httpListenAddr=127.0.0.1:0',
      ];
    },
  },
  {
    names: ['statsd_exporter', 'prometheus-statsd-exporter'],
    args: (_around, _sink, listen) => [
      `--web.listen-address=${listen}`,
      '--statsd.listen-udp=127.0.0.1:0',
      '--statsd.listen-tcp=',
    ],
    scraped: () => ['/metrics'],
  },
  {
    names: ['blackbox_exporter', 'prometheus-blackbox-exporter'],
    args: (_around, _sink, listen) => [
      `--config.file=${text('blackbox.yml', 'modules: {http: {prober: http}}\n')}`,
      `--web.listen-address=${listen}`,
    ],
    scraped: ({ health }) => health.map((url) => `/probe?module=http&target=${encodeURIComponent(url)}`),
  },
  {
    names: ['postgres_exporter', 'prometheus-postgres-exporter'],
    // Without a data source the peer ends at once.
    args: ({ postgres }, _sink, listen) => (postgres ? [`--web.listen-address=${listen}`] : undefined),
    env: ({ postgres }) => ({
      DATA_SOURCE_NAME: `postgresql://postgres@${postgres}/postgres?sslmode=disable`,
    }),
    scraped: () => ['/metrics'],
  },
];

/** Measures a peer at its work; undefined if there is no work for it here, or if it ended. */
async function measurePeer(name: string, peer: Peer, sink: string): Promise<Footprint | undefined> {
  const listen = `127.0.0.1:${await freePort()}`;
  const args = peer.args(around, sink, listen);
  if (!args) return undefined;
  const child = launch(name, args, { stdio: 'ignore', env: { ...process.env, ...peer.env?.(around) } });
  const scrape = () => {
    for (const path of peer.scraped?.(around) ?? [])
      fetch(`http://${listen}${path}`).then(
        (answer) => answer.arrayBuffer(),
        () => {},
      );
  };
  const scraping = setInterval(scrape, 15_000);
  await pause(1_000);
  scrape();
  try {
    return child.exitCode === null ? await atRest(child) : undefined;
  } finally {
    clearInterval(scraping);
  }
}

function print(name: string, { residentMiB, privateMiB, peakMiB, idlePercent, readyMs }: Footprint): void {
  const columns = [residentMiB, privateMiB, peakMiB].map((value) => value.toFixed(1).padStart(9));
  const ready = readyMs === undefined ? '' : `${readyMs.toFixed(0)} ms`;
  console.log(`${name.padEnd(20)}${columns.join('')}${idlePercent.toFixed(2).padStart(9)}  ${ready}`);
}

for (const role of roles) writeFileSync(logOf(role), '');
const around = await surround(place, { root, logOf, seriesCount });
const sink = `http://127.0.0.1:${await serveSink()}/write`;
console.log(`every feature on, ${around.store}, 4 logs, ${seriesCount} scraped series; MiB, % of a core`);
console.log(`${''.padEnd(20)} resident  private     peak     idle  ready`);
print('svc-agent', await agent(around.config, { isPageOpen: false }));
print('with its page open', await agent(around.config, { isPageOpen: true }));
const sum = { residentMiB: 0, privateMiB: 0, peakMiB: 0, idlePercent: 0 };
for (const peer of peers) {
  const { names } = peer;
  const name = names.find(hasCommand);
  if (!name) {
    console.log(`${names[0]!.padEnd(20)} not installed`);
    continue;
  }
  const measured = await measurePeer(name, peer, sink);
  if (!measured) {
    console.log(`${name.padEnd(20)} has no work here, or ended`);
    continue;
  }
  print(name, measured);
  for (const key of ['residentMiB', 'privateMiB', 'peakMiB', 'idlePercent'] as const)
    sum[key] += measured[key];
}
print('peers together', sum);
await around.close();
