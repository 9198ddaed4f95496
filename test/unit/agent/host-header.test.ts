import { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { namesListener } from '../../../src/agent/admin/routes.ts';

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
