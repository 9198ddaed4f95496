import { describe, expect, test } from 'vitest';
import { addressesConflict, dialHost, formatAddress, parseAddress } from '../../../src/core/address.ts';

describe('host:port', () => {
  test.each([
    ['127.0.0.1:9464', { host: '127.0.0.1', port: 9464 }],
    ['localhost:0', { host: 'localhost', port: 0 }],
    ['[::1]:65535', { host: '::1', port: 65535 }],
    ['[fe80::1%eth0]:80', { host: 'fe80::1%eth0', port: 80 }],
    ['store-1.example:5432', { host: 'store-1.example', port: 5432 }],
    ['', undefined],
    [':9464', undefined],
    ['127.0.0.1', undefined],
    ['127.0.0.1:', undefined],
    ['127.0.0.1:65536', undefined],
    ['127.0.0.256:80', undefined],
    ['1.2.3:80', undefined],
    ['::1:80', undefined],
    ['[127.0.0.1]:80', undefined],
    ['a b:80', undefined],
    ['http://a:80', undefined],
  ])('%s', (text, expected) => {
    expect(parseAddress(text)).toEqual(expected);
    if (expected) expect(formatAddress(expected)).toBe(text);
  });
});

test.each([
  ['0.0.0.0:80', '127.0.0.1:80', true],
  ['[::]:80', '127.0.0.1:80', true],
  ['0.0.0.0:80', '10.0.0.5:80', true], // one of the machine's own
  ['0.0.0.0:80', '10.0.0.6:80', false], // somebody else's
  ['0.0.0.0:80', '[::]:80', true],
  ['localhost:80', '127.0.0.1:80', true],
  ['127.0.0.1:80', '127.0.0.2:80', false],
  ['127.0.0.1:80', '127.0.0.1:81', false],
  ['127.0.0.1:0', '127.0.0.1:0', false],
  ['Store.example:80', 'store.example:80', true],
])('%s meets %s: %s', (one, other, expected) => {
  const local = new Set(['10.0.0.5']);
  expect(addressesConflict(parseAddress(one)!, parseAddress(other)!, local)).toBe(expected);
  expect(addressesConflict(parseAddress(other)!, parseAddress(one)!, local)).toBe(expected);
});

test.each([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
  ['10.0.0.5', '10.0.0.5'],
])('a listener on %s is dialled at %s', (host, expected) => expect(dialHost(host)).toBe(expected));
