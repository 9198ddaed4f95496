import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { ListenerAuth } from '../../../src/core/access.ts';
import type { Routes } from '../../../src/reporters/listen/http.ts';
import { newFolder } from '../../folder.ts';
import { get, openListener, rest, say } from './scraper.ts';
import { basic } from './secure.ts';

const folder = newFolder(afterAll);
afterAll(() => {
  delete process.env.SVC_AGENT_TEST_PASSWORD;
});

const text = (body: string, access?: 'open' | 'credentials'): Routes[string] => ({
  ...(access && { access }),
  handle: (_, reply) => reply.send(200, body),
});
const routes: Routes = {
  '/metrics': text('metrics'),
  '/health': text('health', 'open'),
  '/start': { methods: ['POST'], ...text('started', 'credentials') },
};

async function listen(auth?: ListenerAuth) {
  const { listener, ...more } = await openListener({ name: 'admin', secure: auth ? { auth } : {} });
  listener.routes = routes;
  const status = async (headers: Record<string, string> = {}, path = '/metrics', method = 'GET') =>
    (await get(listener.address, path, headers, method)).status;
  return { ...more, listener, status };
}

/** Hashes by libxcrypt, of `open sesame` and the user's name. */
const users = {
  alice: '$2y$04$......................aAN59yuY/MkUpjZ.ZLemKXx8KFH..sy',
  bob: '$2b$05$abcdefghijklmnopqrstuubx4l53BqpyA0ox59C0SQbv.4dyNe666',
};

test('users by bcrypt hash', async () => {
  const { listener, status, dropped } = await listen({ basicAuthUsers: users });
  expect(await status(basic('alice', 'open sesame alice'))).toBe(200);
  expect(await status(basic('bob', 'open sesame bob'))).toBe(200);
  expect(await status(basic('alice', 'open sesame alice'))).toBe(200);
  expect(dropped).toEqual([]);
  const refused = [
    {},
    basic('alice', 'open sesame bob'),
    basic('alice', ''),
    basic('', ''),
    basic('carol', 'open sesame alice'),
    basic('Alice', 'open sesame alice'),
    { authorization: 'Basic !!!' },
    { authorization: 'Basic' },
    { authorization: `Bearer ${users.alice}` },
    { authorization: `Basic ${Buffer.from(`alice:${users.alice}`).toString('base64')}` },
  ];
  for (const headers of refused) expect([headers, await status(headers)]).toEqual([headers, 401]);
  expect(dropped).toEqual(refused.map(() => 'pull unauthorized'));
  const { headers } = await get(listener.address, '/metrics');
  expect(headers['www-authenticate']).toBe('Basic realm="svc-agent", charset="UTF-8"');
});

test('one user and a bearer, their secrets read again at each request', async () => {
  const file = join(folder, 'token');
  writeFileSync(file, 'first\n');
  process.env.SVC_AGENT_TEST_PASSWORD = 'pässword: x';
  const { listener, status, logged } = await listen({
    bearer: { file },
    basic: { username: 'scraper', password: { env: 'SVC_AGENT_TEST_PASSWORD' } },
  });
  expect(await status({ authorization: 'Bearer first' })).toBe(200);
  expect(await status({ authorization: 'bearer  first' })).toBe(200);
  expect(await status(basic('scraper', 'pässword: x'))).toBe(200);
  expect(await status(basic('scraper', 'pässword'))).toBe(401);
  expect(await status({ authorization: 'Bearer second' })).toBe(401);
  writeFileSync(file, 'second');
  expect(await status({ authorization: 'Bearer second' })).toBe(200);
  expect(await status({ authorization: 'Bearer first' })).toBe(401);
  const { headers } = await get(listener.address, '/metrics');
  expect(headers['www-authenticate']).toBe(
    'Basic realm="svc-agent", charset="UTF-8", Bearer realm="svc-agent"',
  );

  expect(logged.filter(({ level }) => level === 'error')).toEqual([]);
  for (const spoil of [() => writeFileSync(file, '\n'), () => rmSync(file)]) {
    spoil();
    expect(await status({ authorization: 'Bearer second' })).toBe(500);
    expect(logged.at(-1)).toMatchObject({ level: 'error', msg: 'request failed' });
  }
});

test('a browser cannot be given a token: it is the password of any user name, for requests that change nothing', async () => {
  const { listener, status } = await listen({ bearer: 'a token: x' });
  expect(await status(basic('', 'a token: x'))).toBe(200);
  expect(await status(basic('anybody', 'a token: x'), '/metrics', 'HEAD')).toBe(200);
  expect(await status(basic('', 'a token'))).toBe(401);
  expect(await status(basic('a token: x', ''))).toBe(401);
  expect(await status(basic('', 'a token: x'), '/start', 'POST')).toBe(401);
  expect(await status({ authorization: 'Bearer a token: x' }, '/start', 'POST')).toBe(200);
  const { headers } = await get(listener.address, '/metrics');
  expect(headers['www-authenticate']).toBe(
    'Basic realm="svc-agent", charset="UTF-8", Bearer realm="svc-agent"',
  );
});

test('health is open; what else there is nobody learns without credentials', async () => {
  const { listener, status } = await listen({ basicAuthUsers: users });
  expect(await status({}, '/health')).toBe(200);
  expect(await status({}, '/health?x', 'HEAD')).toBe(200);
  for (const path of ['/', '/nothing', '/metrics?service=x', '//health', '/health/', '/%68ealth']) {
    const { status: code, body } = await get(listener.address, path);
    expect([path, code, body.toString()]).toEqual([path, 401, 'Unauthorized.\n']);
  }
  expect(await status({}, '/health', 'DELETE')).toBe(405);
  expect(await status(basic('bob', 'open sesame bob'), '/nothing')).toBe(404);
});

test('what changes something needs credentials: nobody may where the listener has none', async () => {
  const guarded = await listen({ basicAuthUsers: users });
  expect(await guarded.status({}, '/start', 'POST')).toBe(401);
  expect(await guarded.status(basic('bob', 'open sesame bob'), '/start', 'POST')).toBe(200);
  const unguarded = await listen();
  expect(await unguarded.status({}, '/metrics')).toBe(200);
  expect(await unguarded.status(basic('bob', 'open sesame bob'), '/start', 'POST')).toBe(403);
});

test('who is refused has to connect again', async () => {
  const { listener } = await listen({ basicAuthUsers: users });
  const socket = await say(listener.address, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
  expect(await rest(socket)).toContain('HTTP/1.1 401');
});

test('other credentials count from the next request on a connection that stays', async () => {
  const { listener } = await listen({ basicAuthUsers: { bob: users.bob } });
  const { authorization } = basic('bob', 'open sesame bob');
  const ask = `GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`;
  const socket = await say(listener.address, ask);
  const [first] = (await once(socket, 'data')) as [Buffer];
  expect(first.toString()).toContain('HTTP/1.1 200');
  listener.protect({ auth: { basicAuthUsers: { alice: users.alice } } })();
  socket.write(ask);
  expect(await rest(socket)).toContain('HTTP/1.1 401');
});
