import { afterEach, expect, test } from 'vitest';
import { createListener, type Listener, type ListenerLimits } from '../../src/reporters/listen/listener.ts';
import { get, listenerDeps, rest, say, until } from '../integration/pull/scraper.ts';

let listener: Listener;
const listen = async (limits: Partial<ListenerLimits>) => {
  const deps = listenerDeps();
  listener = await createListener({ name: 'metrics', address: '127.0.0.1:0', limits }, deps);
  listener.routes = { '/a': { handle: (_, reply) => reply.send(200, 'a') } };
  return deps;
};
afterEach(() => listener.close());

test.each([
  ['sends nothing', ''],
  ['never ends its headers', 'GET /a HTTP/1.1\r\nHost: a\r\nX: '],
])('a connection that %s is closed', async (_, sent) => {
  await listen({ headerMs: 50 });
  expect(await rest(await say(listener.address, sent))).toContain('HTTP/1.1 408');
});

test('a connection that rests too long is closed', async () => {
  await listen({ idleMs: 50 });
  const answer = await rest(await say(listener.address, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'));
  expect(answer).toContain('HTTP/1.1 200');
});

test('one connection too many is closed and counted; those that rest make room', async () => {
  const { dropped } = await listen({ connections: 2 });
  const resting = await Promise.all([
    say(listener.address, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'),
    say(listener.address, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'),
  ]);
  const ended = resting.map(rest);
  await until(() => resting.every(({ bytesRead }) => bytesRead > 0), 'both are answered');
  await expect(get(listener.address, '/a')).rejects.toThrow(/ECONNRESET|hang up/);
  expect(dropped).toEqual(['pull too_many_connections']);
  await Promise.all(ended);
  expect((await get(listener.address, '/a')).status).toBe(200);
});
