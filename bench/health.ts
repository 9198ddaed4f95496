/**
 * Measures the CPU time of health checks: an agent that checks fifty roles every second, minus the same agent without checks, and
 * blackbox_exporter with as many requests. `npm run bench -- health [SECONDS] [OTHER_ROOT]`, default 30 s; an agent of another
 * root (a folder with another `dist/`) runs at the same time.
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { numberAt, rootsFrom } from './arguments.ts';
import {
  configIn,
  hasCommand,
  launch,
  mainOf,
  newPlace,
  pause,
  serve,
  startAgent,
  usageOf,
} from './process.ts';

const seconds = numberAt(0, 'SECONDS', 30);
const roots = rootsFrom(1);
const roles = 50;
const place = newPlace('health');
let answered = 0;
const port = await serve((_request, response) => {
  answered++;
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true,"msg":"OK"}');
});
const url = `http://127.0.0.1:${port}/health`;

async function startCopy(root: string, name: string, health: string): Promise<ChildProcess> {
  const services = Array.from({ length: roles }, (_, n) => `  role${n}: {${health}}\n`).join('');
  const config = configIn(join(place, name), `admin: ~\nservices:\n${services}`);
  return (await startAgent(config, { main: mainOf(root) })).child;
}

/** The CPU seconds of each process over the same stretch, and how many checks were answered. */
async function stretch(measured: readonly ChildProcess[]): Promise<{ cpu: number[]; checks: number }> {
  const before = measured.map(({ pid }) => usageOf(pid!).cpuSeconds);
  const from = answered;
  await pause(seconds * 1000);
  const cpu = measured.map(({ pid }, n) => usageOf(pid!).cpuSeconds - before[n]!);
  return { cpu, checks: answered - from };
}

const print = (name: string, cpuSeconds: number, checks: number) =>
  console.log(`${name}: ${((cpuSeconds / checks) * 1000).toFixed(2)} CPU s a thousand checks, of ${checks}`);

const without = await startCopy(roots[0]!, 'without', '');
const checking: ChildProcess[] = [];
for (const [n, root] of roots.entries())
  checking.push(await startCopy(root, `checking-${n}`, `health: {url: ${url}, interval: 1s, timeout: 1s}`));
await pause(10_000);
const agents = [without, ...checking];
const { cpu, checks } = await stretch(agents);
for (const [n, root] of roots.entries())
  print(`agent of ${root}`, cpu[n + 1]! - cpu[0]!, checks / roots.length);
for (const child of agents) child.kill('SIGKILL');

async function measureExporter(command: string): Promise<void> {
  const modules = join(place, 'blackbox.yml');
  writeFileSync(modules, 'modules: {http: {prober: http}}\n');
  const port = 30_000 + (process.pid % 20_000);
  const exporter = launch(command, [
    `--config.file=${modules}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--log.level=error',
  ]);
  const agent = new Agent({ keepAlive: true });
  const probe = `http://127.0.0.1:${port}/probe?module=http&target=${encodeURIComponent(url)}`;
  const ask = () => void get(probe, { agent }, (answer) => answer.resume()).on('error', () => {});
  setInterval(ask, 1000 / roles);
  await pause(3_000);
  const { cpu, checks } = await stretch([exporter]);
  print(command, cpu[0]!, checks);
}

const exporter = ['blackbox_exporter', 'prometheus-blackbox-exporter'].find(hasCommand);
if (exporter) await measureExporter(exporter);
else console.log('blackbox_exporter is not installed: no comparison');
