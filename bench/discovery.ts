/**
 * Measures how late the built agent discovers files, and whether any of their lines is lost:
 *   services    one new file for each of 90 services of one configuration
 *   short       1,000 files that live for 3 s each, 50 begun per second
 *   catch-up    a new file beside 400 MB that are being read
 *
 * The delay of a file is the time from its last line to the scrape that has all of its lines.
 *
 *   npm run bench -- discovery [MEGABYTES]
 */
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { numberAt } from './arguments.ts';

const megabytes = numberAt(0, 'MEGABYTES', 400);
const main = join(process.env.SVC_AGENT_ROOT ?? '.', 'dist', 'main.js');
const root = mkdtempSync(join(tmpdir(), 'svc-agent-discovery-'));
const linesEach = 20;
const line = (file: string) => `{"level":"info","file":"${file}","msg":"${'x'.repeat(100)}"}\n`;

async function startAgent(name: string, services: Record<string, string>) {
  const config = join(root, `${name}.yaml`);
  const rules = 'rules: [{name: lines_by_file, type: counter, help: Lines, labels: {file: file}}]';
  const parts = Object.entries(services).map(
    ([service, path]) => `  ${service}: {logs: {paths: ["${path}"], startAt: beginning, ${rules}}}`,
  );
  writeFileSync(
    config,
    `stateDirectory: ${join(root, `${name}-state`)}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
limits: {seriesPerMetric: 20000}
services:
${parts.join('\n')}
`,
  );
  const child = spawn(process.execPath, [main, 'run', '-c', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const address = async (listener: string) => {
    for (;;) {
      if (child.exitCode !== null) throw new Error(output);
      for (const text of output.split('\n')) {
        if (!text.includes('"listening"') || !text.includes(`"${listener}"`)) continue;
        return (JSON.parse(text) as { address: string }).address;
      }
      await pause(10);
    }
  };
  const metrics = await address('metrics');
  const admin = await address('admin');
  while ((await fetch(`http://${admin}/ready`)).status !== 200) await pause(10);
  return {
    async counts(): Promise<Map<string, number>> {
      const page = await (await fetch(`http://${metrics}/metrics`)).text();
      const found = page.matchAll(/^lines_by_file(?:_total)?\{[^}]*file="([^"]*)"[^}]*\} (\S+)$/gm);
      return new Map([...found].map(([, file, value]) => [file!, Number(value)]));
    },
    async end() {
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGTERM');
      await ended;
    },
  };
}

type Agent = Awaited<ReturnType<typeof startAgent>>;

/** Scrapes until everything that was written is counted, or nothing has changed for 30 s. */
async function watch(agent: Agent, written: ReadonlyMap<string, number>, isWriting: () => boolean) {
  const delays = new Map<string, number>();
  let changed = performance.now();
  while (isWriting() || (delays.size < written.size && performance.now() - changed < 30_000)) {
    const counts = await agent.counts();
    const now = performance.now();
    for (const [file, writtenMs] of written) {
      if (delays.has(file) || counts.get(file) !== linesEach) continue;
      delays.set(file, now - writtenMs);
      changed = now;
    }
    await pause(20);
  }
  const counts = await agent.counts();
  const lost = [...written.keys()].reduce((sum, file) => sum + linesEach - (counts.get(file) ?? 0), 0);
  return { delays: [...delays.values()].sort((a, b) => a - b), lost };
}

function print(what: string, { delays, lost }: { delays: number[]; lost: number }, files: number) {
  const ms = (value: number | undefined) => `${(value ?? Number.NaN).toFixed(0)} ms`;
  process.stdout.write(
    `${what}: ${files} files, median ${ms(delays[delays.length >> 1])}, largest ${ms(delays.at(-1))}, ` +
      `${lost} of ${files * linesEach} lines lost\n`,
  );
}

async function manyServices(): Promise<void> {
  const services: Record<string, string> = {};
  for (let n = 0; n < 90; n++) {
    mkdirSync(join(root, 'services', `${n}`), { recursive: true });
    services[`service${n}`] = join(root, 'services', `${n}`, '*.log');
  }
  const agent = await startAgent('services', services);
  const written = new Map<string, number>();
  const watching = watch(agent, written, () => written.size < 90);
  for (let n = 0; n < 90; n++) {
    writeFileSync(join(root, 'services', `${n}`, 'a.log'), line(`s${n}`).repeat(linesEach));
    written.set(`s${n}`, performance.now());
    await pause(30);
  }
  print('services', await watching, 90);
  await agent.end();
}

async function shortLived(): Promise<void> {
  const place = join(root, 'short');
  mkdirSync(place);
  const agent = await startAgent('short', { short: join(place, '*.log') });
  const written = new Map<string, number>();
  let isWriting = true;
  const watching = watch(agent, written, () => isWriting);
  const ends: Promise<void>[] = [];
  for (let n = 0; n < 1000; n++) {
    const path = join(place, `${n}.log`);
    writeFileSync(path, line(`f${n}`).repeat(linesEach));
    written.set(`f${n}`, performance.now());
    ends.push(pause(3000).then(() => rmSync(path)));
    await pause(20);
  }
  isWriting = false;
  print('short', await watching, 1000);
  await Promise.all(ends);
  await agent.end();
}

async function besideCatchUp(): Promise<void> {
  const place = join(root, 'catch-up');
  mkdirSync(place);
  const agent = await startAgent('catch-up', { beside: join(place, '*.log') });
  const text = line('large');
  const chunk = text.repeat(Math.ceil(2 ** 20 / text.length));
  for (let n = 0; n < megabytes; n++) appendFileSync(join(place, 'large.txt'), chunk);
  const written = new Map<string, number>();
  let isWriting = true;
  const watching = watch(agent, written, () => isWriting);
  renameSync(join(place, 'large.txt'), join(place, 'large.log'));
  const wanted = (megabytes * chunk.length) / text.length;
  for (let n = 0; ((await agent.counts()).get('large') ?? 0) < wanted; n++) {
    writeFileSync(join(place, `${n}.log`), line(`f${n}`).repeat(linesEach));
    written.set(`f${n}`, performance.now());
    await pause(500);
  }
  isWriting = false;
  print('catch-up', await watching, written.size);
  await agent.end();
}

try {
  await manyServices();
  await shortLived();
  await besideCatchUp();
} finally {
  rmSync(root, { recursive: true, force: true });
}
