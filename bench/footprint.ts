/**
 * The agent at rest: time to ready, memory, idle CPU, beside mtail on the same four files in the same run.
 * `npm run bench -- footprint [SECONDS]`, default 20 s of rest.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logLines } from './lines.ts';
import { hasCommand, pause, type Usage, usageOf } from './process.ts';

const restSeconds = Number(process.argv[2] ?? 20);
const agentMain = join(process.env.SVC_AGENT_ROOT ?? '.', 'dist', 'main.js');
const place = mkdtempSync(join(tmpdir(), 'svc-agent-footprint-'));
const roles = ['frontend', 'history', 'matching', 'worker'];
const logOf = (role: string) => join(place, `${role}.log`);

interface Rest {
  readyMs?: number;
  after: Usage;
  idlePercent: number;
}

/** Feeds every log once, lets things settle, then measures a stretch in which nothing happens. */
async function atRest(child: ChildProcess): Promise<Omit<Rest, 'readyMs'>> {
  for (const role of roles) appendFileSync(logOf(role), logLines('flat', 5_000, role.length));
  // The tailer looks often for some seconds after the last line.
  await pause(12_000);
  const before = usageOf(child.pid!);
  await pause(restSeconds * 1_000);
  const after = usageOf(child.pid!);
  child.kill('SIGKILL');
  return { after, idlePercent: ((after.cpuSeconds - before.cpuSeconds) / restSeconds) * 100 };
}

async function agent(): Promise<Rest> {
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
  const begun = performance.now();
  const child = spawn(process.execPath, [agentMain, 'run', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  const admin = () => /"listener":"admin","address":"([^"]+)"/.exec(output);
  for (;;) {
    const address = admin()?.[1];
    const ready =
      address &&
      (await fetch(`http://${address}/ready`).then(
        (r) => r.ok,
        () => false,
      ));
    if (ready) break;
    if (child.exitCode !== null) throw new Error(`the agent ended: ${output}`);
    await pause(2);
  }
  const readyMs = performance.now() - begun;
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

function print(name: string, { readyMs, after, idlePercent }: Rest): void {
  const ready = readyMs === undefined ? '' : `  ready in ${readyMs.toFixed(0)} ms`;
  console.log(
    `${name.padEnd(6)} resident ${after.residentMiB.toFixed(1)} MiB, peak ${after.peakMiB.toFixed(1)} MiB, idle ${idlePercent.toFixed(2)} % of a core${ready}`,
  );
}

try {
  for (const role of roles) writeFileSync(logOf(role), '');
  const ours = await agent();
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
