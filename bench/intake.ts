/**
 * Sends datagrams to the built agent while it tails a busy log, and prints how many were sent, how many were counted, how many
 * the kernel dropped, and the CPU time (`bench/statsd.ts` has the peer). `npm run bench -- intake [SECONDS]`, default 5.
 */
import { createSocket } from 'node:dgram';
import { openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { numberAt } from './arguments.ts';
import { sumOn, textOf } from './figures.ts';
import { logLines } from './lines.ts';
import { configIn, newPlace, pause, startAgent, usageOf } from './process.ts';

const seconds = numberAt(0, 'SECONDS', 5);
const place = newPlace('intake');
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

async function countsOf(address: string): Promise<{ counted: number; dropped: number }> {
  const page = await textOf(`http://${address}/metrics`);
  return {
    counted: sumOn(page, 'svc_matching_tasks_added'),
    dropped: sumOn(page, 'svc_agent_statsd_kernel_drops_total'),
  };
}

writeFileSync(log, '');
const config = configIn(
  place,
  `admin: {listenAddress: 127.0.0.1:0}
services: {matching: {statsd: 127.0.0.1:0, logs: {paths: [${log}], startAt: beginning}}}
`,
);
const { pid, address } = await startAgent(config);
const port = Number(address('services.matching.statsd.listen').split(':').at(-1));

const block = logLines('flat', 1_000);
const fd = openSync(log, 'a');
setInterval(() => writeSync(fd, block), 20);
const rounds = [
  ['one line', oneLine, 1, 20_000],
  ['one line', oneLine, 1, 50_000],
  ['packed', packed, 18, 10_000],
] as const;
for (const [name, datagrams, linesEach, perSecond] of rounds) {
  const [before, usedBefore] = [await countsOf(address('metrics')), usageOf(pid)];
  const begun = performance.now();
  const sent = await send(datagrams, linesEach, perSecond, port);
  const [after, usedAfter] = [await countsOf(address('metrics')), usageOf(pid)];
  const core = (usedAfter.cpuSeconds - usedBefore.cpuSeconds) / ((performance.now() - begun) / 1000);
  const counted = after.counted - before.counted;
  const lost = (after.dropped - before.dropped) * linesEach;
  console.log(
    `${name.padEnd(8)} ${perSecond}/s: ${sent} lines sent, ${counted} counted, ${lost} in datagrams the kernel dropped, ${sent - counted - lost} unaccounted; ${core.toFixed(2)} core beside ${(block.length / 20_000).toFixed(0)} MB/s of log`,
  );
}
