/**
 * Measures the start of the built agent up to its ready line: wall time, CPU seconds of the agent and its ended children, peak
 * memory; four roles with logs, health, scrape and one SQL store. With a second root (a folder with another `dist/`) the two take
 * turns and the ratio is printed pair by pair.
 *
 *   npm run bench -- start [RUNS] [OTHER_ROOT]      default 15 runs; `NODE` names another node
 */
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { numberAt, rootsFrom } from './arguments.ts';
import { median } from './figures.ts';
import { configIn, mainOf, newPlace, startAgent, stopped, usageOf } from './process.ts';

const runs = numberAt(0, 'RUNS', 15);
const roots = rootsFrom(1);
const place = newPlace('start');
const roles = ['frontend', 'history', 'matching', 'worker'];

const service = (role: string) => `  ${role}:
    logs: {paths: [${join(place, `${role}.log`)}]}
    health: {url: http://127.0.0.1:9/health}
    scrape: {url: http://127.0.0.1:9/metrics}
`;
const config = configIn(
  place,
  `admin: {listenAddress: 127.0.0.1:0}
stores: [{name: persistence, kind: postgres, address: 127.0.0.1:9, databases: {persistence: svc}}]
services:
${roles.map(service).join('')}`,
);

interface Start {
  wallMs: number;
  cpuMs: number;
  peakMiB: number;
}

async function start(root: string): Promise<Start> {
  const begunMs = performance.now();
  const { child, pid } = await startAgent(config, { main: mainOf(root) });
  const wallMs = performance.now() - begunMs;
  const { cpuSeconds, endedChildrenCpuSeconds, peakMiB } = usageOf(pid);
  await stopped(child);
  return { wallMs, cpuMs: (cpuSeconds + endedChildrenCpuSeconds) * 1000, peakMiB };
}

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
