import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import type { OpenDatagrams } from '../../../src/reporters/push/destination.ts';
import { count, gauge, startPush, systemError } from '../../push.ts';

interface FakeSocket extends EventEmitter {
  type: string;
  address: string;
  closes: number;
}

/** Sockets without a kernel. `fail` has the codes with which the next sends fail, undefined for a send that succeeds. */
function network() {
  const sockets: FakeSocket[] = [];
  const sent: string[] = [];
  const fail: (string | undefined)[] = [];
  const lookups: string[] = [];
  const world = { sockets, sent, fail, lookups, found: [{ address: '10.0.0.1', family: 4 }], refuses: '' };
  const open = ((type: string) => {
    const socket: FakeSocket = Object.assign(new EventEmitter(), { type, address: '', closes: 0 });
    sockets.push(socket);
    return Object.assign(socket, {
      unref() {},
      close: () => void socket.closes++,
      connect(_port: number, address: string) {
        socket.address = address;
        const failure = world.refuses === '' ? undefined : systemError(world.refuses);
        queueMicrotask(() => (failure ? socket.emit('error', failure) : socket.emit('connect')));
      },
      send(datagram: Uint8Array, done: (error: Error | null) => void) {
        const code = fail.shift();
        if (code === undefined) sent.push(Buffer.from(datagram).toString());
        queueMicrotask(() => done(code === undefined ? null : systemError(code)));
      },
    });
  }) as unknown as OpenDatagrams;
  const lookup = async (host: string) => {
    lookups.push(host);
    return world.found;
  };
  return Object.assign(world, { deps: { open, lookup } });
}

const named = { hostPort: 'statsd.test:8125', tagFormat: 'none' } as const;

test.each<[code: string, reason: string, closes: number, lookups: number]>([
  ['EMSGSIZE', 'too_large', 0, 1],
  ['ECONNREFUSED', 'refused', 0, 2],
  ['ENOBUFS', 'no_buffers', 0, 2],
  ['ENOMEM', 'no_buffers', 0, 2],
  ['EAGAIN', 'no_buffers', 0, 2],
  ['ENETUNREACH', 'unreachable', 1, 2],
  ['EHOSTUNREACH', 'unreachable', 1, 2],
  ['ENETDOWN', 'unreachable', 1, 2],
  ['EADDRNOTAVAIL', 'unreachable', 1, 2],
  ['EPERM', 'failed', 1, 2],
])('%s at a send is %s: what was not sent stays owed', async (code, reason, closes, lookups) => {
  const net = network();
  const rig = await startPush(named, net.deps);
  net.fail.push(code);
  rig.show([count('a', 3)]);
  await rig.flush();
  await rig.flush();
  expect(rig.failures).toEqual([reason]);
  expect([net.sockets[0]!.closes, net.lookups.length]).toEqual([closes, lookups]);
  expect(net.sent).toEqual(['a:3|c']);
  expect(rig.dropped.size).toBe(0);
  await rig.stop();
  expect(net.sockets.map((socket) => socket.closes)).toEqual(net.sockets.map(() => 1));
});

test('a refusal tells of the datagram before it, whose lines are counted once', async () => {
  const net = network();
  const rig = await startPush(named, net.deps);
  rig.show([count('a', 1), count('b', 1)]);
  await rig.flush();
  net.fail.push('ECONNREFUSED', 'ECONNREFUSED');
  rig.show([count('a', 2), count('b', 1)]);
  await rig.flush();
  await rig.flush();
  expect(Object.fromEntries(rig.dropped)).toEqual({ send_failed: 2 });
  await rig.flush();
  expect(net.sent).toEqual(['a:1|c\nb:1|c', 'a:1|c']);
  // Between two sends, only a refusal reports about the last datagram.
  net.sockets[0]!.emit('error', systemError('EHOSTUNREACH'));
  expect(Object.fromEntries(rig.dropped)).toEqual({ send_failed: 2 });
  net.sockets[0]!.emit('error', systemError('ECONNREFUSED'));
  expect(Object.fromEntries(rig.dropped)).toEqual({ send_failed: 3 });
  expect(rig.failures).toEqual(['refused', 'refused', 'unreachable', 'refused']);
});

test('after a failure the other datagrams of a flush are not sent, and their gauges are lost', async () => {
  const net = network();
  const rig = await startPush({ ...named, flushBytes: 5 }, net.deps);
  net.fail.push('ENOBUFS');
  rig.show([count('a', 1), count('b', 1), gauge('g', 1), gauge('h', 1)]);
  await rig.flush();
  expect([net.sent, Object.fromEntries(rig.dropped)]).toEqual([[], { send_failed: 2 }]);
  await rig.flush();
  expect(net.sent).toEqual(['a:1|c', 'b:1|c', 'g:1|g', 'h:1|g']);
});

test('increases are committed before they are sent, gauges are not; if that fails, all stay owed', async () => {
  const net = network();
  const sentBefore: number[] = [];
  let isBroken = false;
  const commit = async () => {
    sentBefore.push(net.sent.length);
    if (isBroken) throw new Error('no disk');
  };
  const rig = await startPush(named, { ...net.deps, commit });
  rig.show([gauge('g', 1)]);
  await rig.flush();
  expect(sentBefore).toEqual([]);
  rig.show([count('a', 1), gauge('g', 1)]);
  isBroken = true;
  await rig.flush();
  isBroken = false;
  await rig.flush();
  expect(sentBefore).toEqual([1, 1]);
  expect(net.sent).toEqual(['g:1|g', 'a:1|c\ng:1|g']);
  expect(rig.failures).toEqual(['no_view']);
  expect(Object.fromEntries(rig.dropped)).toEqual({ send_failed: 1 });
});

test('the first failure is logged, and the recovery after two flushes, once', async () => {
  const net = network();
  const rig = await startPush(named, net.deps);
  rig.show([gauge('g', 1)]);
  const flush = async (...codes: (string | undefined)[]) => {
    net.fail.push(...codes);
    for (const _ of codes) await rig.flush();
    return rig.logged.map(({ msg }) => msg);
  };
  expect(await flush(undefined, undefined, undefined)).toEqual([]);
  expect(await flush('ENOBUFS', undefined, 'ENOBUFS', undefined)).toEqual(['push failed']);
  expect(await flush(undefined, undefined)).toEqual(['push failed', 'push works again']);
});

test('a name is looked up again after 10 s, and its socket stays while one of its addresses does', async () => {
  const net = network();
  const rig = await startPush(named, net.deps);
  rig.show([gauge('g', 1)]);
  const flushes = async (n: number) => {
    for (let i = 0; i < n; i++) await rig.flush();
    return [net.lookups.length, net.sockets.map(({ type, address }) => `${type} ${address}`)];
  };
  expect(await flushes(10)).toEqual([1, ['udp4 10.0.0.1']]);
  net.found = [
    { address: '10.0.0.2', family: 4 },
    { address: '10.0.0.1', family: 4 },
  ];
  expect(await flushes(10)).toEqual([2, ['udp4 10.0.0.1']]);
  net.found = [{ address: '2001:db8::1', family: 6 }];
  expect(await flushes(1)).toEqual([3, ['udp4 10.0.0.1', 'udp6 2001:db8::1']]);
  expect(net.sockets.map(({ closes }) => closes)).toEqual([1, 0]);
  net.found = [];
  expect(await flushes(10)).toEqual([4, ['udp4 10.0.0.1', 'udp6 2001:db8::1']]);
  expect(rig.failures).toEqual(['resolve']);
});

test('an address is not looked up; a socket that cannot be connected is closed, and the next flush tries again', async () => {
  const net = network();
  const rig = await startPush({ ...named, hostPort: '[::1]:8125' }, net.deps);
  net.refuses = 'EACCES';
  rig.show([gauge('g', 1)]);
  await rig.flush();
  net.refuses = '';
  await rig.flush();
  expect(net.lookups).toEqual([]);
  expect(net.sockets.map(({ type, closes }) => [type, closes])).toEqual([
    ['udp6', 1],
    ['udp6', 0],
  ]);
  expect([rig.failures, net.sent]).toEqual([['failed'], ['g:1|g']]);
});

test('each flush is a span with its lines, their bytes and its failure', async () => {
  const net = network();
  const spans: unknown[] = [];
  const rig = await startPush(named, {
    ...net.deps,
    tracing: {
      span: async (
        name: string,
        values: object,
        run: (found: (more: object, error?: string) => void) => unknown,
      ) => {
        const span: unknown[] = [name, values];
        spans.push(span);
        return run((...found) => void span.push(...found));
      },
    } as never,
  });
  net.fail.push('ENOBUFS');
  rig.show([count('a', 1), gauge('gg', 10)]);
  await rig.flush();
  rig.show([gauge('gg', 10)]);
  await rig.flush();
  const of = (points: number, bytes: number) => ({ 'svc.batch.points': points, 'svc.batch.bytes': bytes });
  expect(spans).toEqual([
    ['deliver', of(2, 12), { 'svc.failure.reason': 'no_buffers' }, 'send ENOBUFS'],
    ['deliver', of(2, 12)],
  ]);
});
