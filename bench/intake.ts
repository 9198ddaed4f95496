/**
 * Sends datagrams to the built agent while it tails a busy log, and prints how many were sent, how many were counted, how many
 * the kernel dropped, and the CPU time (`bench/statsd.ts` has the peer). `npm run bench -- intake [SECONDS]`, default 5.
 */
import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { numberAt } from './arguments.ts';
import { logLines } from './lines.ts';
import { pause, usageOf } from './process.ts';

const seconds = numberAt(0, 'SECONDS', 5);
const agentMain = join(process.env.SVC_AGENT_ROOT ?? '.', 'dist', 'main.js');
const place = mkdtempSync(join(tmpdir(), 'svc-agent-intake-'));
const log = join(place, 'matching.log');

const line = (n: number) =>
  `svc_matching_tasks_added:1|c|#domain:domain-${n % 50},tasklist:tasklist-${n % 20}`;
const oneLine = Array.from({ length: 1000 }, (_, n) => Buffer.from(line(n)));
const packed = Array.from({ length: 50 }, (_, k) =>
  Buffer.from(Array.from({ length: 18 }, (_, n) => line(k * 18 + n)).join('\n')),
);

/** Sends at a steady rate, at most the lines of 20 ms at once; returns the number of lines sent. */
async function send(
  datagrams: readonly Buffer[],
  linesEach: number,
  perSecond: number,
  port: number,
): Promise<number> {
  const socket = createSocket('udp4');
  const begun = performance.now();
  let sent = 0;
  while (performance.now() - begun < seconds * 1000) {
    const due = Math.floor(((performance.now() - begun) / 1000) * perSecond);
    for (let n = Math.max(sent, due - perSecond / 50); n < due; n++) {
      socket.send(datagrams[sent % datagrams.length]!, port, '127.0.0.1');
      sent += 1;
    }
    await pause(1);
  }
  await pause(500);
  socket.close();
  return sent * linesEach;
}

interface Page {
  counted: number;
  dropped: number;
}

async function pageOf(address: string): Promise<Page> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  const sum = (family: string) =>
    [...text.matchAll(new RegExp(`^${family}(?:\\{.*\\})? (\\S+)$`, 'gm'))].reduce(
      (n, [, value]) => n + Number(value),
      0,
    );
  return { counted: sum('svc_matching_tasks_added'), dropped: sum('svc_agent_statsd_kernel_drops_total') };
}

async function measure(): Promise<void> {
  const config = join(place, 'agent.yaml');
  writeFileSync(log, '');
  writeFileSync(
    config,
    `stateDirectory: ${join(place, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
services: {matching: {statsd: 127.0.0.1:0, logs: {paths: [${log}], startAt: beginning}}}
`,
  );
  const child = spawn(process.execPath, [agentMain, 'run', '-c', config], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  for (let waited = 0; !output.includes('"ready"') && waited < 500; waited++) await pause(20);
  const addressOf = (name: string) =>
    new RegExp(`"listener":"${name}","address":"([^"]+)"`).exec(output)?.[1] ?? '';
  const status = (await (await fetch(`http://${addressOf('admin')}/api/status`)).json()) as {
    statsd: { addresses: { listen: string } }[];
  };
  const port = Number(status.statsd[0]!.addresses.listen.split(':').at(-1));

  const block = logLines('flat', 1_000);
  const fd = openSync(log, 'a');
  const writing = setInterval(() => writeSync(fd, block), 20);
  const rounds = [
    ['one line', oneLine, 1, 20_000],
    ['one line', oneLine, 1, 50_000],
    ['packed', packed, 18, 10_000],
  ] as const;
  for (const [name, datagrams, linesEach, perSecond] of rounds) {
    const [before, usedBefore] = [await pageOf(addressOf('metrics')), usageOf(child.pid!)];
    const begun = performance.now();
    const sent = await send(datagrams, linesEach, perSecond, port);
    const [after, usedAfter] = [await pageOf(addressOf('metrics')), usageOf(child.pid!)];
    const core = (usedAfter.cpuSeconds - usedBefore.cpuSeconds) / ((performance.now() - begun) / 1000);
    const counted = after.counted - before.counted;
    const lost = (after.dropped - before.dropped) * linesEach;
    console.log(
      `${name.padEnd(8)} ${perSecond}/s: ${sent} lines sent, ${counted} counted, ${lost} in datagrams the kernel dropped, ${sent - counted - lost} unaccounted; ${core.toFixed(2)} core beside ${(block.length / 20_000).toFixed(0)} MB/s of log`,
    );
  }
  clearInterval(writing);
  child.kill('SIGKILL');
}

try {
  await measure();
} finally {
  rmSync(place, { recursive: true, force: true });
}
