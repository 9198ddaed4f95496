/**
 * The agent at rest: time to ready, memory, idle CPU, beside mtail on the same four files in the same run.
 * `all`: with everything configured and 5,000 scraped series; living children (a domain's command) are told apart.
 * `npm run bench -- footprint [SECONDS] [all]`, default 20 s of rest; `NODE` names another node for the agent.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logLines } from './lines.ts';
import { hasCommand, pause, type Usage, usageOf } from './process.ts';
import { surround } from './surroundings.ts';

const restSeconds = Number(process.argv[2] ?? 20);
const withAll = process.argv[3] === 'all';
const dist = join(process.env.SVC_AGENT_ROOT ?? '.', 'dist');
const node = process.env.NODE ?? process.execPath;
const place = mkdtempSync(join(tmpdir(), 'svc-agent-footprint-'));
const roles = ['frontend', 'history', 'matching', 'worker'];
const seriesCount = 5_000;
const logOf = (role: string) => join(place, `${role}.log`);

interface Rest {
  readyMs?: number;
  after: Usage;
  idlePercent: number;
  /** Most that children lived in beside it at one time. */
  childrenMiB: number;
}

/** Resident memory of the children that live now. */
function childrenMiB(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  let total = 0;
  for (const child of children) {
    try {
      total += usageOf(Number(child)).residentMiB;
    } catch {
      // It has ended meanwhile.
    }
  }
  return total;
}

/** Feeds every log once, lets things settle, then measures a stretch in which nothing happens. */
async function atRest(child: ChildProcess): Promise<Omit<Rest, 'readyMs'>> {
  for (const role of roles) appendFileSync(logOf(role), logLines('flat', 5_000, role.length));
  // The tailer looks often for some seconds after the last line.
  await pause(12_000);
  const before = usageOf(child.pid!);
  let most = 0;
  for (const endMs = performance.now() + restSeconds * 1_000; performance.now() < endMs; await pause(100)) {
    most = Math.max(most, childrenMiB(child.pid!));
  }
  const after = usageOf(child.pid!);
  child.kill('SIGKILL');
  return {
    after,
    idlePercent: ((after.cpuSeconds - before.cpuSeconds) / restSeconds) * 100,
    childrenMiB: most,
  };
}

function logsAlone(): string {
  const config = join(place, 'agent.yaml');
  const services = roles
    .map((role) => `  ${role}: {logs: {paths: [${logOf(role)}], startAt: beginning}}\n`)
    .join('');
  writeFileSync(
    config,
    `stateDirectory: ${join(place, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
services:
${services}`,
  );
  return config;
}

async function agent(config: string): Promise<Rest> {
  const begun = performance.now();
  const child = spawn(node, [join(dist, 'main.js'), 'run', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  while (!output.includes('"msg":"ready"')) {
    if (child.exitCode !== null) throw new Error(`the agent ended: ${output}`);
    await pause(2);
  }
  const readyMs = performance.now() - begun;
  const address = /"listener":"metrics","address":"([^"]+)"/.exec(output)?.[1];
  const isCollected = async () => {
    const text = await fetch(`http://${address}/metrics`).then((response) => response.text());
    return text.split('\n').length > seriesCount;
  };
  while (withAll && !(await isCollected())) await pause(500);
  return { readyMs, ...(await atRest(child)) };
}

async function mtail(): Promise<Rest> {
  const program = join(place, 'svc.mtail');
  writeFileSync(program, 'counter entries by level\n/"level":"(?P<level>[a-z]+)"/ { entries[$level]++ }\n');
  const args = [
    '--progs',
    program,
    ...roles.flatMap((role) => ['--logs', logOf(role)]),
    '--address',
    '127.0.0.1',
    '--port',
    '0',
  ];
  return atRest(spawn('mtail', args, { stdio: 'ignore' }));
}

function print(name: string, { readyMs, after, idlePercent, childrenMiB: children }: Rest): void {
  const ready = readyMs === undefined ? '' : `  ready in ${readyMs.toFixed(0)} ms`;
  const beside = children > 0 ? `, children at most ${children.toFixed(1)} MiB` : '';
  console.log(
    `${name.padEnd(6)} resident ${after.residentMiB.toFixed(1)} MiB, peak ${after.peakMiB.toFixed(1)} MiB${beside}, idle ${idlePercent.toFixed(2)} % of a core${ready}`,
  );
}

async function withSurroundings(): Promise<Rest> {
  const around = await surround(place, { dist, logOf, seriesCount });
  try {
    console.log(`everything configured, ${around.store}, ${seriesCount} scraped series`);
    return await agent(around.config);
  } finally {
    await around.close();
  }
}

try {
  for (const role of roles) writeFileSync(logOf(role), '');
  const ours = withAll ? await withSurroundings() : await agent(logsAlone());
  print('agent', ours);
  if (hasCommand('mtail')) {
    const theirs = await mtail();
    print('mtail', theirs);
    console.log(
      `ratio  ${(ours.after.residentMiB / theirs.after.residentMiB).toFixed(1)} times mtail's memory`,
    );
  }
} finally {
  rmSync(place, { recursive: true, force: true });
}
