import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openStatsd } from '../statsd.ts';
import { until } from '../until.ts';

/**
 * A program that sends datagrams of this size for 1 s at a pace and for 1 s at ten times that pace, and prints the number of
 * lines.
 */
const sender = `
const [port, bytes, perSecond] = process.argv.slice(1).map(Number);
const line = 'burst.requests:1|c|#operation:GetShard';
const lines = Math.max(1, Math.floor(bytes / (line.length + 1)));
const datagram = Buffer.from(Array(lines).fill(line).join('\\n'));
const socket = require('node:dgram').createSocket('udp4');
socket.connect(port, '127.0.0.1', () => {
  const start = performance.now();
  let sent = 0;
  const burst = () => {
    const seconds = Math.min(2, (performance.now() - start) / 1000);
    const due = perSecond * (seconds < 1 ? seconds : 1 + 10 * (seconds - 1));
    for (; sent < due; sent++) socket.send(datagram);
    if (seconds < 2) setTimeout(burst, 1);
    else socket.close(() => process.stdout.write(JSON.stringify({ sent, lines })));
  };
  burst();
});`;

describe.runIf(process.platform === 'linux')('a burst of ten times the usual rate', () => {
  test.each([
    ['512 B', 512, 2000],
    ['1.4 kB', 1400, 1000],
    ['8 kB', 8000, 200],
  ])('%s datagrams: what is lost is what the kernel reports', async (_, bytes, perSecond) => {
    const open = await openStatsd({ listen: '127.0.0.1:0' }, systemClock);
    const port = open.statsd.status().addresses.listen!.split(':').at(-1)!;
    const args = ['-e', sender, port, String(bytes), String(perSecond)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    await once(child, 'close');
    const { sent, lines } = JSON.parse(out) as { sent: number; lines: number };
    await until('received and dropped are what was sent', () => {
      open.statsd.pollKernelDrops();
      return open.statsd.status().datagrams + open.kernelDrops.total >= sent;
    });
    await until('all is read', () => open.statsd.status().lines === open.statsd.status().datagrams * lines);
    const { datagrams } = open.statsd.status();
    expect(datagrams + open.kernelDrops.total).toBe(sent);
    expect(open.shown()).toEqual({ 'counter burst.requests{"operation":"GetShard"}': datagrams * lines });
  });
});
