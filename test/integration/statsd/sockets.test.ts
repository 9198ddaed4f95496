import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import type { Log } from '../../../src/core/ports.ts';
import { manualClock } from '../../clock.ts';
import { type OpenStatsd, openStatsd, sendDatagrams } from '../../statsd.ts';
import { until } from '../../until.ts';

let open: OpenStatsd | undefined;
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'statsd-'));
});
afterEach(async () => {
  await open?.stop();
  open = undefined;
  await rm(directory, { recursive: true });
});

const dial = async (to: string) => {
  const at = to.lastIndexOf(':');
  const socket = at === -1 ? connect(to) : connect(Number(to.slice(at + 1)), to.slice(0, at));
  await once(socket, 'connect');
  return socket;
};

describe('datagrams', () => {
  test.each(['127.0.0.1:0', '[::1]:0', 'localhost:0', '0.0.0.0:0'])('on %s', async (listen) => {
    open = await openStatsd({ listen }, systemClock);
    const bound = open.statsd.status().addresses.listen!;
    const target = bound.replace('0.0.0.0', '127.0.0.1');
    await sendDatagrams(target, ['a:1|c\nb:2|g', 'a:2|c', Buffer.alloc(0), 'bad']);
    // A received datagram may still wait for its slice.
    const isRead = () => open!.statsd.status().lines === 4 && open!.drops['statsd/invalid_line'] === 2;
    await until('four datagrams were read', isRead);
    expect(open.statsd.status().datagrams).toBe(4);
    expect(open.shown()).toEqual({ 'counter a': 3, 'gauge b': 2 });
    expect(open.drops).toEqual({ 'statsd/invalid_line': 2 });
    expect(open.statsd.status()).toMatchObject({ lines: 4, refused: { invalid_line: 2 }, knownLines: 2 });
  });

  test('of several prefixes the longest goes', async () => {
    open = await openStatsd(
      { listen: '127.0.0.1:0', prefixes: ['svc', 'svc.history', 'other'] },
      systemClock,
    );
    await sendDatagrams(open.statsd.status().addresses.listen!, ['svc.a:1|c\nsvc.history.b:1|c\nsvcs.c:1|c']);
    await until('all were read', () => open!.statsd.status().lines === 3);
    expect(open.shown()).toEqual({ 'counter a': 1, 'counter b': 1, 'counter svcs.c': 1 });
  });

  test('the log says where it listens, and what it was sent that it cannot read, once', async () => {
    const entries: [string, Record<string, unknown>?][] = [];
    const log: Log = { write: (_, msg, fields) => void entries.push([msg, fields]), named: () => log };
    open = await openStatsd({ listen: '127.0.0.1:0', receiveBufferBytes: 2 ** 30 }, systemClock, { log });
    const address = open.statsd.status().addresses.listen!;
    await sendDatagrams(address, Array(5).fill('who are you'));
    await until('all were refused', () => open!.drops['statsd/invalid_line'] === 5);
    const granted = open.statsd.status().receiveBufferBytes;
    expect(entries).toEqual([
      ['listening', { listener: 'services.frontend.statsd.listen', address, receiveBufferBytes: granted }],
      ['receive buffer smaller than asked for', expect.objectContaining({ granted, asked: 2 ** 30 })],
      ['statsd input refused', { reason: 'invalid_line', first: 'who are you' }],
    ]);
    expect(granted).toBeLessThan(2 ** 30);
  });

  test('of each reason the log shows what was refused again after an hour, up to 120 bytes of it', async () => {
    const shown: unknown[] = [];
    const log: Log = { write: (_, msg, fields) => void shown.push([msg, fields?.first]), named: () => log };
    const clock = manualClock();
    clock.advance(3_600_000);
    open = await openStatsd({ listen: '127.0.0.1:0', receiveBufferBytes: 65_536 }, clock, { log });
    // Linux reports twice the requested size, for its own bookkeeping.
    if (process.platform === 'linux') expect(open.statsd.status().receiveBufferBytes).toBe(65_536);
    shown.length = 0;
    const address = open.statsd.status().addresses.listen!;
    const send = async (line: string, reason: string, count: number) => {
      await sendDatagrams(address, [line]);
      await until(`${line} is refused`, () => open!.drops[`statsd/${reason}`] === count);
    };
    const long = 'first '.repeat(30);
    await send(long, 'invalid_line', 1);
    await send('second', 'invalid_line', 2);
    await send('a:x|c', 'invalid_value', 1);
    clock.advance(3_599_999);
    await send('third', 'invalid_line', 3);
    clock.advance(1);
    await send('fourth', 'invalid_line', 4);
    expect(shown).toEqual(
      [long.slice(0, 120), 'a:x|c', 'fourth'].map((first) => ['statsd input refused', first]),
    );
    expect(open.statsd.status().examples).toEqual({ invalid_line: 'fourth', invalid_value: 'a:x|c' });
  });

  test('an address in use, of which no socket is left', async () => {
    open = await openStatsd({ listen: '127.0.0.1:0' }, systemClock);
    const listen = open.statsd.status().addresses.listen!;
    const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind === 'UDPWrap').length;
    const before = sockets();
    await expect(openStatsd({ listen }, systemClock)).rejects.toMatchObject({
      code: 'address_in_use',
      fault: { where: 'services.frontend.statsd.listen', got: listen },
    });
    await until('its socket is closed', () => sockets() === before, { withinMs: 20_000 });
  });

  test('what was bound before one that cannot be is free again', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const taken = `127.0.0.1:${(server.address() as { port: number }).port}`;
    const free = await openStatsd({ listen: '127.0.0.1:0' }, systemClock);
    const listen = free.statsd.status().addresses.listen!;
    await free.stop();
    await expect(openStatsd({ listen, tcp: taken }, systemClock)).rejects.toMatchObject({
      code: 'address_in_use',
    });
    open = await openStatsd({ listen }, systemClock);
    server.close();
  });
});

describe('streams', () => {
  test('100,000 lines over TCP, none lost, whatever pieces they come in', async () => {
    open = await openStatsd({ tcp: '127.0.0.1:0' }, systemClock);
    const socket = await dial(open.statsd.status().addresses.tcp!);
    const text = Buffer.from('a.counter:1|c|#k:v\nb:2|ms\n'.repeat(50_000));
    for (let at = 0; at < text.length; at += 7919) {
      if (!socket.write(text.subarray(at, at + 7919))) await once(socket, 'drain');
    }
    socket.end();
    await until('all lines came', () => open!.statsd.status().lines === 100_000);
    expect(open.shown()['counter a.counter{"k":"v"}']).toBe(50_000);
    expect(open.shown()['histogram b']).toHaveLength(50_000);
    expect(open.drops).toEqual({});
  });

  test('two connections do not mix their lines', async () => {
    open = await openStatsd({ tcp: '127.0.0.1:0' }, systemClock);
    const [one, two] = [
      await dial(open.statsd.status().addresses.tcp!),
      await dial(open.statsd.status().addresses.tcp!),
    ];
    one.write('a:1');
    two.write('b:1');
    two.write('2|c\n');
    await until('the second connection came', () => open!.statsd.status().lines === 1);
    one.write('1|c\n');
    await until('the first connection came', () => open!.statsd.status().lines === 2);
    expect(open.shown()).toEqual({ 'counter a': 11, 'counter b': 12 });
    one.destroy();
    two.destroy();
  });

  test('a connection that ends within a line', async () => {
    open = await openStatsd({ tcp: '127.0.0.1:0' }, systemClock);
    const socket = await dial(open.statsd.status().addresses.tcp!);
    socket.end('a:1|c\na:100|c|@0.');
    await until('the rest is refused', () => open!.drops['statsd/invalid_line'] === 1);
    expect(open.shown()).toEqual({ 'counter a': 1 });
  });

  test('a line over the limit is refused, and those around it are counted', async () => {
    open = await openStatsd({ tcp: '127.0.0.1:0' }, systemClock);
    const socket = await dial(open.statsd.status().addresses.tcp!);
    socket.end(`a:1|c\n${'x'.repeat(100_000)}\nb:2|c\n`);
    await until('the last line came', () => open!.shown()['counter b'] === 2);
    expect(open.shown()).toEqual({ 'counter a': 1, 'counter b': 2 });
    expect(open.drops).toEqual({ 'statsd/line_too_long': 1 });
  });

  test('connections over the limit are closed and counted, the others go on', async () => {
    open = await openStatsd({ tcp: '127.0.0.1:0' }, systemClock);
    const address = open.statsd.status().addresses.tcp!;
    const sockets = await Promise.all(Array.from({ length: 128 }, () => dial(address)));
    const late = await dial(address);
    late.on('error', () => {});
    await Promise.race([once(late, 'close'), once(late, 'end')]);
    late.destroy();
    expect(open.drops).toEqual({ 'statsd/too_many_connections': 1 });
    expect(open.statsd.status().examples).toEqual({ too_many_connections: 'more than 128 connections' });
    sockets[127]!.write('a:1|c\n');
    await until('the last one that got in is heard', () => open!.statsd.status().lines === 1);
    for (const socket of sockets) socket.destroy();
  });

  test('over a Unix socket, whose file goes with it', async () => {
    const unix = join(directory, 'statsd.sock');
    open = await openStatsd({ unix }, systemClock);
    const socket = await dial(unix);
    socket.end('a:1|c\n');
    await until('the line came', () => open!.statsd.status().lines === 1);
    await open.stop();
    expect(existsSync(unix)).toBe(false);
  });

  test('the socket file of a process that was killed is replaced', async () => {
    const unix = join(directory, 'statsd.sock');
    const program = `require('net').createServer().listen(process.argv[1], () => console.log('up'))`;
    const child = spawn(process.execPath, ['-e', program, unix], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await expect(openStatsd({ unix }, systemClock)).rejects.toMatchObject({ code: 'address_in_use' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(existsSync(unix)).toBe(true);
    open = await openStatsd({ unix }, systemClock);
    const socket = await dial(unix);
    socket.end('a:1|c\n');
    await until('the line came', () => open!.statsd.status().lines === 1);
  });

  test('a file that is no socket is left alone', async () => {
    const unix = join(directory, 'notes.txt');
    await writeFile(unix, 'mine');
    await expect(openStatsd({ unix }, systemClock)).rejects.toMatchObject({ code: 'address_in_use' });
    expect(existsSync(unix)).toBe(true);
  });
});
