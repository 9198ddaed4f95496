/**
 * Measures the start of the built agent up to its ready line: wall time, CPU seconds of the agent and its ended children, peak
 * memory; four roles with logs, health, scrape and one SQL store. With a second root (a folder with another `dist/`) the two take
 * turns and the ratio is printed pair by pair.
 *
 *   npm run bench -- start [RUNS] [OTHER_ROOT]      default 15 runs; `NODE` names another node
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { numberAt, rootsFrom } from './arguments.ts';
import { ticksPerSecond, usageOf } from './process.ts';

const runs = numberAt(0, 'RUNS', 15);
const roots = rootsFrom(1);
const node = process.env.NODE ?? process.execPath;
const place = mkdtempSync(join(tmpdir(), 'svc-agent-start-'));
const roles = ['frontend', 'history', 'matching', 'worker'];

const service = (role: string) => `  ${role}:
    logs: {paths: [${join(place, `${role}.log`)}]}
    health: {url: http://127.0.0.1:9/health}
    scrape: {url: http://127.0.0.1:9/metrics}
`;
const config = join(place, 'agent.yaml');
writeFileSync(
  config,
  `stateDirectory: ${join(place, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
stores: [{name: persistence, kind: postgres, address: 127.0.0.1:9, databases: {persistence: svc}}]
services:
${roles.map(service).join('')}`,
);

interface Start {
  wallMs: number;
  cpuMs: number;
  peakMiB: number;
}

/** The CPU time of children that ended and were waited for. */
function endedChildrenCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return ((Number(fields[13]) + Number(fields[14])) / ticksPerSecond) * 1000;
}

function start(root: string): Promise<Start> {
  const begunMs = performance.now();
  const child = spawn(node, [join(root, 'dist', 'main.js'), 'run', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  return new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (!output.includes('"msg":"ready"') || child.killed) return;
      const wallMs = performance.now() - begunMs;
      const { cpuSeconds, peakMiB } = usageOf(child.pid!);
      const started = { wallMs, cpuMs: cpuSeconds * 1000 + endedChildrenCpuMs(child.pid!), peakMiB };
      child.once('exit', () => resolve(started));
      child.kill('SIGTERM');
    });
    child.once('exit', () => !child.killed && reject(new Error(`the agent ended: ${output}`)));
  });
}

const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!;

try {
  for (const root of roots) await start(root);
  const all: Start[][] = roots.map(() => []);
  for (let run = 0; run < runs; run++) {
    for (const [i, root] of roots.entries()) all[i]!.push(await start(root));
  }
  const load = loadavg()[0]!.toFixed(1);
  console.log(`${runs} starts each, load ${load}`);
  for (const [i, starts] of all.entries()) {
    const of = (key: keyof Start) => starts.map((one) => one[key]);
    const wall = of('wallMs');
    console.log(
      `${roots[i]}: ready in ${median(wall).toFixed(0)} ms (${Math.min(...wall).toFixed(0)} to ${Math.max(...wall).toFixed(0)}), CPU ${median(of('cpuMs')).toFixed(0)} ms, peak ${median(of('peakMiB')).toFixed(1)} MiB`,
    );
  }
  const [one, other] = all;
  if (one && other) {
    const ratio = (key: 'wallMs' | 'cpuMs') =>
      median(one.map((start, i) => start[key] / other[i]![key])).toFixed(2);
    console.log(`ratio, pair by pair: time ${ratio('wallMs')}, CPU ${ratio('cpuMs')}`);
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
