import type { IncomingMessage } from 'node:http';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { namesListener, routesOfHost } from '../../../src/agent/admin/routes.ts';
import type { Reply } from '../../../src/reporters/listen/http.ts';

const own = Object.values(networkInterfaces())
  .flat()
  .find((address) => address && !address.internal && address.family === 'IPv4')?.address;
const cases: [host: string | undefined, listenAddress: string, isNamed: boolean][] = [
  [undefined, '127.0.0.1:9465', true],
  ['127.0.0.1:9465', '127.0.0.1:9465', true],
  ['127.8.9.1', '0.0.0.0:9465', true],
  ['localhost:9465', '127.0.0.1:9465', true],
  ['LOCALHOST.', '127.0.0.1:9465', true],
  ['agent.localhost:1', '127.0.0.1:9465', true],
  ['[::1]:9465', '[::]:9465', true],
  ['10.1.2.3:9465', '10.1.2.3:9465', true],
  ['agent.example.com', '0.0.0.0:9465', true],
  ['Agent.Example.Com:8443', '0.0.0.0:9465', true],
  ['evil.example', '127.0.0.1:9465', false],
  ['127.0.0.1.evil.example', '127.0.0.1:9465', false],
  ['localhost.evil.example:9465', '0.0.0.0:9465', false],
  ['evil.example@127.0.0.1', '127.0.0.1:9465', false],
  ['10.1.2.4', '10.1.2.3:9465', false],
  ['203.0.113.9', '0.0.0.0:9465', false],
  ['', '0.0.0.0:9465', false],
];

test.each(cases)('Host %j at %s: %s', (host, listenAddress, isNamed) => {
  expect(namesListener(host, { listenAddress, allowedHosts: ['agent.example.com'] })).toBe(isNamed);
});

test.skipIf(!own)('an address of the machine, where the listener has all of them', () => {
  expect(namesListener(`${own}:9465`, { listenAddress: '0.0.0.0:9465' })).toBe(true);
});

const senders: [headers: Record<string, string>, status: number][] = [
  [{}, 200],
  [{ 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate' }, 200],
  [{ 'sec-fetch-site': 'same-origin', origin: 'http://behind.a.proxy' }, 200],
  [{ 'sec-fetch-site': 'same-site' }, 403],
  [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }, 403],
  [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }, 403],
  [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }, 403],
  [{ origin: 'http://127.0.0.1:9465' }, 200],
  [{ origin: 'http://127.0.0.1:9466' }, 403],
  [{ origin: 'https://evil.example' }, 403],
  [{ origin: 'null' }, 403],
  [{ host: '', origin: 'http://127.0.0.1:9465' }, 403],
  [{ host: 'localhost:443', origin: 'https://localhost' }, 200],
  [{ host: 'evil.example' }, 403],
  [{ host: 'evil.example', 'sec-fetch-site': 'same-origin' }, 403],
];

test.each(senders)('a request with %j: %d', (headers, status) => {
  const answers: number[] = [];
  let refusals = 0;
  const route = { handle: () => void answers.push(200) };
  const routes = routesOfHost({ '/probe': route }, { listenAddress: '127.0.0.1:9465' }, () => refusals++);
  const message = { headers: { host: '127.0.0.1:9465', ...headers } } as unknown as IncomingMessage;
  const reply = { send: (code: number) => void answers.push(code) } as unknown as Reply;
  routes['/probe']!.handle({ url: new URL('http://listener/probe?name=x'), message }, reply);
  expect([...answers, refusals]).toEqual([status, status === 200 ? 0 : 1]);
});
