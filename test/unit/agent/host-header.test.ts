import type { IncomingMessage } from 'node:http';
import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { routesOfHost } from '../../../src/agent/admin/routes.ts';
import type { Reply } from '../../../src/reporters/listen/http.ts';

const own = Object.values(networkInterfaces())
  .flat()
  .find((address) => address && !address.internal && address.family === 'IPv4')?.address;
const everywhere = '0.0.0.0:9465';
const loopback = '127.0.0.1:9465';

const senders: [headers: Record<string, string | undefined>, status: number, listenAddress?: string][] = [
  [{ host: undefined }, 200],
  [{ host: '127.8.9.1' }, 200, everywhere],
  [{ host: 'localhost:9465' }, 200],
  [{ host: 'LOCALHOST.' }, 200],
  [{ host: 'agent.localhost:1' }, 200],
  [{ host: '[::1]:9465' }, 200, '[::]:9465'],
  [{ host: '10.1.2.3:9465' }, 200, '10.1.2.3:9465'],
  [{ host: 'agent.example.com' }, 200, everywhere],
  [{ host: 'Agent.Example.Com:8443' }, 200, everywhere],
  // An address of the machine, where the listener has all of them.
  ...(own ? [[{ host: `${own}:9465` }, 200, everywhere] as [{ host: string }, number, string]] : []),
  [{ host: '127.0.0.1.evil.example' }, 403],
  [{ host: 'localhost.evil.example:9465' }, 403, everywhere],
  [{ host: 'evil.example@127.0.0.1' }, 403],
  [{ host: '10.1.2.4' }, 403, '10.1.2.3:9465'],
  [{ host: '203.0.113.9' }, 403, everywhere],
  [{ host: '' }, 403, everywhere],
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

test.each(senders)('a request with %j: %d', (headers, status, listenAddress = loopback) => {
  const answers: number[] = [];
  let refusals = 0;
  const route = { handle: () => void answers.push(200) };
  const listener = { listenAddress, allowedHosts: ['agent.example.com'] };
  const routes = routesOfHost({ '/probe': route }, listener, () => refusals++);
  const message = { headers: { host: loopback, ...headers } } as unknown as IncomingMessage;
  const reply = { send: (code: number) => void answers.push(code) } as unknown as Reply;
  routes['/probe']!.handle({ url: new URL('http://listener/probe?name=x'), message }, reply);
  expect([...answers, refusals]).toEqual([status, status === 200 ? 0 : 1]);
});
