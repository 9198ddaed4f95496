import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { openStatsd, sendDatagrams } from '../statsd.ts';
import { until } from '../until.ts';

/** A program that sends this many datagrams at a pace, and then prints that it is done. */
const sender = `
const [port, total, perSecond] = process.argv.slice(1).map(Number);
const socket = require('node:dgram').createSocket('udp4');
socket.connect(port, '127.0.0.1', () => {
  const start = performance.now();
  let sent = 0;
  const burst = () => {
    const due = Math.min(total, ((performance.now() - start) / 1000) * perSecond);
    for (; sent < due; sent++) socket.send('stalled.requests:1|c');
    if (sent < total) setTimeout(burst, 1);
    else socket.close();
  };
  burst();
});`;

/** Blocks the event loop, as a long computation does. */
function stall(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

// Only Linux reports how many datagrams its buffers dropped.
describe.runIf(process.platform === 'linux')('a stall of the event loop', () => {
  test('2 s at 20,000 datagrams/s: every lost one is in the kernel’s figure, and reading goes on', async () => {
    const total = 40_000;
    const open = await openStatsd({ listen: '127.0.0.1:0', receiveBufferBytes: 256 * 1024 }, systemClock);
    const address = open.statsd.status().addresses.listen!;
    const args = ['-e', sender, address.split(':').at(-1)!, String(total), '20000'];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    const exited = once(child, 'exit');
    await until('the first datagram came', () => open.statsd.status().datagrams > 0);
    stall(2000);
    await exited;
    await until('received and dropped are what was sent', () => {
      open.statsd.pollKernelDrops();
      return open.statsd.status().datagrams + open.kernelDrops.total >= total;
    });
    // What was received may still wait to be read.
    await until('all that was received is read', () => {
      const { datagrams, lines } = open.statsd.status();
      return lines === datagrams;
    });
    const { datagrams } = open.statsd.status();
    expect(datagrams + open.kernelDrops.total).toBe(total);
    expect(open.kernelDrops.total).toBeGreaterThan(0);
    expect(open.shown()).toEqual({ 'counter stalled.requests': datagrams });

    await sendDatagrams(address, ['after:1|c']);
    await until('a datagram is read after the stall', () => 'counter after' in open.shown());
    expect(open.drops).toEqual({});
  });
});
