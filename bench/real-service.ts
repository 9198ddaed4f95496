/**
 * Memory, CPU and delay of the agent beside a recorded service: the built program scrapes the recorded history page (scaled to
 * 60,000 samples, its counters growing) every 15 s and is scraped in the same way as by Prometheus. vmagent does the same work in
 * the same run, for at most ten minutes. Every 20 rounds a line shows the CPU time and memory of the agent since the last line.
 * `npm run bench -- real-service [ROUNDS] [INTERVAL_SECONDS] [DIRECTORY]`; DIRECTORY has the pages as `<role>.txt.gz` (default:
 * $SVC_AGENT_PAGES). Several roles: ROLES=history,frontend. SAMPLES: the number of samples in the history page; AGENT_FLAGS:
 * flags of the agent's Node.
 */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { numberAt, textAt } from './arguments.ts';
import { median } from './figures.ts';
import {
  configIn,
  hasCommand,
  newPlace,
  pause,
  serve,
  startAgent,
  startVmagent,
  stopped,
  type Usage,
  usageOf,
} from './process.ts';

const rounds = numberAt(0, 'ROUNDS', 8);
const intervalMs = numberAt(1, 'INTERVAL_SECONDS', 15) * 1000;
const pages = textAt(2) ?? process.env.SVC_AGENT_PAGES ?? '';
const roles = (process.env.ROLES ?? 'history').split(',');
const historySamples = Number(process.env.SAMPLES ?? 60_000);
const warmUpRounds = 2;
const roundsOfLine = 20;
const place = newPlace('real');

/** A page as text around its values; only values above 0 grow. */
interface RecordedPage {
  keys: string[];
  values: number[];
  samples: number;
}

/** Repeats whole histograms of other task lists until the page has `samples` samples. */
function scaled(lines: readonly string[], samples: number): string[] {
  const isSample = (line: string) => line !== '' && !line.startsWith('#');
  let missing = samples - lines.filter(isSample).length;
  return lines.flatMap((line) => {
    if (missing <= 0 || !isSample(line) || !/task_latency\w*_per_task_list/.test(line)) return [line];
    missing--;
    return [line, line.replace(/task(?:_)?list="/i, (label) => `${label}more-`)];
  });
}

function recordedPage(role: string): RecordedPage {
  const text = gunzipSync(readFileSync(join(pages, `${role}.txt.gz`))).toString();
  const lines = text.trimEnd().split('\n');
  const page: RecordedPage = { keys: [], values: [], samples: 0 };
  for (const line of role === 'history' ? scaled(lines, historySamples) : lines) {
    const [, key, value] = /^([^#].*) (\S+)$/.exec(line) ?? [];
    page.keys.push(key === undefined ? line : `${key} `);
    page.values.push(value === undefined ? Number.NaN : Number(value));
    if (key !== undefined) page.samples++;
  }
  return page;
}

function textOf({ keys, values }: RecordedPage, round: number): Buffer {
  const lines = keys.map((key, n) => {
    const value = values[n]!;
    if (key.startsWith('#')) return key;
    return key + (value > 0 ? value + round : value);
  });
  return Buffer.from(`${lines.join('\n')}\n`);
}

function servePage(role: string): Promise<number> {
  const page = recordedPage(role);
  let round = 0;
  let body = textOf(page, round);
  process.stdout.write(`${role}: ${page.samples} samples, ${(body.length / 1e6).toFixed(1)} MB\n`);
  return serve((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/plain; version=0.0.4', 'content-length': body.length })
      .end(body);
    // The next page is created after the response, so that its cost is not part of any measured delay.
    setTimeout(() => {
      body = textOf(page, ++round);
    }, 400);
  });
}

interface Fetched {
  bytes: number;
  ms: number;
  status: number;
}

function fetched(url: string, headers: Record<string, string> = {}): Promise<Fetched> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    request(url, { headers, agent: false }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('end', () =>
        resolve({ bytes, ms: performance.now() - startMs, status: response.statusCode ?? 0 }),
      );
    })
      .on('error', reject)
      .end();
  });
}

interface Result extends Usage {
  corePercent: number;
}

/** Prints the CPU time and memory since the last call, so that a run shows whether they stay flat. */
function createProgress(child: ChildProcess): (round: number) => void {
  let atMs = performance.now();
  let { cpuSeconds } = usageOf(child.pid!);
  return (round) => {
    const now = usageOf(child.pid!);
    const corePercent = ((now.cpuSeconds - cpuSeconds) / (performance.now() - atMs)) * 1e5;
    process.stdout.write(
      `round ${String(round).padStart(4)}: resident ${now.residentMiB.toFixed(0)} MiB (private ${now.anonymousMiB.toFixed(0)}), ${corePercent.toFixed(2)} % of a core\n`,
    );
    atMs = performance.now();
    ({ cpuSeconds } = now);
  };
}

async function measured(
  child: ChildProcess,
  rounds: number,
  each: (round: number) => Promise<void>,
): Promise<Result> {
  const startMs = performance.now();
  let before = usageOf(child.pid!);
  let residentMiB = 0;
  let anonymousMiB = 0;
  for (let round = 0; round < rounds; round++) {
    const nextMs = startMs + round * intervalMs;
    await pause(Math.max(0, nextMs - performance.now()));
    // The first pages are parsed and opened; after them the steady state begins.
    if (round === warmUpRounds) before = usageOf(child.pid!);
    await each(round);
    for (const endMs = nextMs + 0.9 * intervalMs; performance.now() < endMs; await pause(100)) {
      const now = usageOf(child.pid!);
      residentMiB = Math.max(residentMiB, now.residentMiB);
      anonymousMiB = Math.max(anonymousMiB, now.anonymousMiB);
    }
  }
  await pause(Math.max(0, startMs + rounds * intervalMs - performance.now()));
  const after = usageOf(child.pid!);
  const seconds = (performance.now() - startMs - warmUpRounds * intervalMs) / 1000;
  const corePercent = ((after.cpuSeconds - before.cpuSeconds) / seconds) * 100;
  return { ...after, residentMiB, anonymousMiB, corePercent };
}

async function agent(ports: ReadonlyMap<string, number>): Promise<Result> {
  const services = [...ports].map(
    ([role, port]) =>
      `  ${role}: {scrape: {url: 'http://127.0.0.1:${port}/metrics', interval: ${intervalMs / 1000}s}}\n`,
  );
  const config = configIn(place, `admin: ~\nservices:\n${services.join('')}`);
  const { child, address } = await startAgent(config);
  const prometheus = { 'accept-encoding': 'gzip', 'x-prometheus-scrape-timeout-seconds': '10' };
  const direct: number[] = [];
  const through: number[] = [];
  const [first] = ports as Iterable<[string, number]>;
  const rawBytes = (await fetched(`http://127.0.0.1:${first![1]}/metrics`)).bytes;
  const progress = createProgress(child);
  const result = await measured(child, rounds, async (round) => {
    if (round > 0 && round % roundsOfLine === 0) progress(round);
    direct.push((await fetched(`http://127.0.0.1:${first![1]}/metrics`)).ms);
    await pause(1_100);
    for (const role of ports.keys()) {
      const answer = await fetched(`http://${address('metrics')}/metrics?service=${role}`, prometheus);
      if (answer.status !== 200) process.stdout.write(`agent answered ${answer.status} for ${role}\n`);
      if (role === first![0]) through.push(answer.ms);
    }
  });
  const slower = ((median(through) - median(direct)) / rawBytes) * 1e7;
  process.stdout.write(
    `delay    direct ${median(direct).toFixed(0)} ms, through the agent ${median(through).toFixed(0)} ms: ${slower.toFixed(0)} ms more per 10 MB\n`,
  );
  await stopped(child);
  return result;
}

const print = (name: string, { residentMiB, anonymousMiB, peakMiB, corePercent }: Result) =>
  process.stdout.write(
    `${name.padEnd(8)} resident ${residentMiB.toFixed(0)} MiB (private ${anonymousMiB.toFixed(0)}, peak ${peakMiB.toFixed(0)}), ${corePercent.toFixed(2)} % of a core\n`,
  );

const ports = new Map<string, number>();
for (const role of roles) ports.set(role, await servePage(role));
const ours = await agent(ports);
print('agent', ours);
if (hasCommand('vmagent')) {
  const child = await startVmagent(place, `${intervalMs / 1000}s`, ports.values());
  const theirs = await measured(child, Math.min(rounds, Math.ceil(600_000 / intervalMs)), async () => {});
  print('vmagent', theirs);
  process.stdout.write(
    `ratio    the agent takes ${(ours.residentMiB / theirs.residentMiB).toFixed(2)} times vmagent's memory and ${(ours.corePercent / theirs.corePercent).toFixed(2)} times its CPU\n`,
  );
} else process.stdout.write('vmagent is not installed: no comparison\n');
