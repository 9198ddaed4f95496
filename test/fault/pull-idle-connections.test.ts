import { expect, test } from 'vitest';
import { get, openListener, rest, say } from '../integration/pull/scraper.ts';
import { until } from '../until.ts';

test.each([
  ['sends nothing', ''],
  ['never ends its headers', 'GET /a HTTP/1.1\r\nHost: a\r\nX: '],
])('a connection that %s is closed', async (_, sent) => {
  const { listener } = await openListener({ limits: { headerMs: 50 } });
  expect(await rest(await say(listener.address, sent))).toContain('HTTP/1.1 408');
});

test('a connection that rests too long is closed', async () => {
  const { listener } = await openListener({ limits: { idleMs: 50 } });
  const answer = await rest(await say(listener.address, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'));
  expect(answer).toContain('HTTP/1.1 200');
});

test('at the limit an idle connection makes room for a new one', async () => {
  const { listener, dropped } = await openListener({ limits: { connections: 2 } });
  const idle = await Promise.all([
    say(listener.address, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'),
    say(listener.address, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'),
  ]);
  await until('both are answered', () => idle.every(({ bytesRead }) => bytesRead > 0));
  const ended = idle.map(rest);
  expect((await get(listener.address, '/a')).status).toBe(200);
  await Promise.race(ended);
  expect(dropped).toEqual([]);
});

test('a connection is refused, and counted, while all others have a request in progress', async () => {
  const { listener, dropped } = await openListener({ limits: { connections: 2 } });
  const answers: (() => void)[] = [];
  listener.routes = {
    ...listener.routes,
    '/slow': {
      handle: (_, reply) =>
        new Promise((resolve) => {
          answers.push(() => {
            reply.send(200, 'slow');
            resolve();
          });
        }),
    },
  };
  const slow = [get(listener.address, '/slow'), get(listener.address, '/slow')];
  await until('both requests are in progress', () => answers.length === 2);
  await expect(get(listener.address, '/a')).rejects.toThrow(/ECONNRESET|hang up/);
  expect(dropped).toEqual(['pull too_many_connections']);
  for (const send of answers) send();
  expect((await Promise.all(slow)).map(({ status }) => status)).toEqual([200, 200]);
  expect((await get(listener.address, '/a')).status).toBe(200);
});
