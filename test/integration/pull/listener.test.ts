import { Agent, request } from 'node:http';
import { expect, test } from 'vitest';
import type { Routes } from '../../../src/reporters/listen/http.ts';
import { createListener, createListeners } from '../../../src/reporters/listen/listener.ts';
import { until } from '../../until.ts';
import { get, listenerDeps, openListener, rest, say } from './scraper.ts';

const text = (body: string): Routes[string] => ({ handle: (_, reply) => reply.send(200, body) });

test('says where it listens, and serves by exact path or by what is below one', async () => {
  const { listener, logged } = await openListener();
  expect(logged).toEqual([
    { level: 'info', msg: 'listening', fields: { listener: 'metrics', address: listener.address } },
  ]);
  const below: Routes[string] = { handle: ({ url }, reply) => reply.send(200, url.pathname) };
  listener.routes = { '/': text('top'), '/a': text('a'), '/b/*': below, '/b/c/*': text('nearer') };
  const bodies = ['/', '/a', '/a?x=/b', '/b/x', '/b/c/d'].map((path) => get(listener.address, path));
  const answers = (await Promise.all(bodies)).map(({ body }) => body.toString());
  expect(answers).toEqual(['top', 'a', 'a', '/b/x', 'nearer']);
});

test('404 lists what there is', async () => {
  const { listener } = await openListener();
  listener.routes = { '/metrics': text(''), '/health': text('') };
  for (const path of ['/', '/metrics/', '//metrics', '/__proto__', '/nothing<script>']) {
    const { status, headers, body } = await get(listener.address, path);
    expect([status, body.toString()]).toEqual([
      404,
      'Not found. Paths of this listener:\n/health\n/metrics\n',
    ]);
    expect(headers['x-content-type-options']).toBe('nosniff');
  }
});

test('405 names the methods that go', async () => {
  const { listener } = await openListener();
  listener.routes = { '/a': text('a'), '/start': { methods: ['POST'], ...text('started') } };
  const posted = await get(listener.address, '/a', {}, 'POST');
  expect([posted.status, posted.headers.allow]).toEqual([405, 'GET, HEAD']);
  const got = await get(listener.address, '/start');
  expect([got.status, got.headers.allow]).toEqual([405, 'POST']);
  expect((await get(listener.address, '/start', {}, 'POST')).body.toString()).toBe('started');
  const head = await get(listener.address, '/a', {}, 'HEAD');
  expect([head.status, head.headers['content-length'], head.body.length]).toEqual([200, '1', 0]);
});

test('what a route throws is a 500 that says nothing, and is logged', async () => {
  const { listener, logged } = await openListener();
  const error = new Error('secret');
  listener.routes = {
    '/now': {
      handle() {
        throw error;
      },
    },
    '/later': { handle: () => Promise.reject(error) },
  };
  for (const path of ['/now', '/later']) {
    const { status, body } = await get(listener.address, path);
    expect([status, body.toString()]).toEqual([500, 'Internal error.\n']);
    expect(logged.at(-1)).toEqual({ level: 'error', msg: 'request failed', fields: { path, error } });
  }
});

test('one connection serves many requests', async () => {
  const { listener } = await openListener();
  listener.routes = { '/a': text('a') };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ports = new Set<number | undefined>();
  for (let i = 0; i < 3; i++) {
    await new Promise<void>((resolve, reject) => {
      const sent = request(`http://${listener.address}/a`, { agent }, (response) => {
        ports.add(response.socket.localPort);
        response.resume().on('end', resolve);
      });
      sent.on('error', reject).end();
    });
  }
  agent.destroy();
  expect(ports.size).toBe(1);
});

test.each([
  ['not HTTP', 'nonsense\r\n\r\n', 'HTTP/1.1 400'],
  ['two Host headers', 'GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n', 'HTTP/1.1 400'],
  ['two equal ones', 'GET /a HTTP/1.1\r\nHost: a\r\nhost: a\r\nConnection: close\r\n\r\n', 'HTTP/1.1 400'],
  ['a target that is no path', 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 'HTTP/1.1 400'],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n', 'HTTP/1.1 400'],
  ['headers too long', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 'HTTP/1.1 431'],
  [
    'a body nobody asked for',
    'GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\nx',
    'HTTP/1.1 200',
  ],
])('%s is answered, and the connection closed', async (_, sent, status) => {
  const { listener } = await openListener();
  listener.routes = { '/a': text('a') };
  expect(await rest(await say(listener.address, sent))).toContain(status);
});

test('IPv6', async () => {
  const { listener } = await openListener({ address: '[::1]:0' });
  listener.routes = { '/a': text('six') };
  expect(listener.address).toMatch(/^\[::1\]:\d+$/);
  expect((await get(listener.address, '/a')).body.toString()).toBe('six');
});

test('close lets answers under way end, and no longer than it says', async () => {
  const { listener, clock } = await openListener({ limits: { closeMs: 500 } });
  const replies: { send(status: number, body: string): void }[] = [];
  listener.routes = { '/slow': { handle: (_, reply) => void replies.push(reply) } };
  const outcome = () =>
    get(listener.address, '/slow').then(
      ({ status }) => status,
      () => 'cut off',
    );
  const outcomes = [outcome(), outcome()];
  await until('both are under way', () => replies.length === 2);
  const closed = listener.close();
  replies[0]!.send(200, 'one');
  clock.advance(499);
  expect(await Promise.race(outcomes)).toBe(200);
  clock.advance(1);
  await closed;
  expect((await Promise.all(outcomes)).sort()).toEqual([200, 'cut off']);
  await expect(get(listener.address, '/slow')).rejects.toThrow('ECONNREFUSED');
});

test('a reload keeps an address that stays, and swaps what it serves', async () => {
  const deps = listenerDeps();
  const listeners = createListeners((options) => createListener(options, deps));
  const before = await listeners.hold({ name: 'metrics', address: '127.0.0.1:0' });
  before.routes = { '/a': text('old') };
  const after = await listeners.hold({ name: 'metrics', address: '127.0.0.1:0' });
  expect(after.address).toBe(before.address);
  expect((await get(after.address, '/a')).body.toString()).toBe('old');
  after.routes = { '/a': text('new') };
  await before.close();
  await before.close();
  expect((await get(after.address, '/a')).body.toString()).toBe('new');
  const other = await listeners.hold({ name: 'services.frontend.metrics', address: '127.0.0.1:0' });
  expect(other.address).not.toBe(after.address);
  await Promise.all([after.close(), other.close()]);
  await expect(get(after.address, '/a')).rejects.toThrow('ECONNREFUSED');
});
