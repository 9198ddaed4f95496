import { expect, test } from 'vitest';
import * as z from 'zod';
import type { ListenerTls } from '../../../src/core/access.ts';
import { statsdBlock } from '../../../src/sources/statsd/block.ts';

const schema = () => statsdBlock({ tls: z.custom<ListenerTls>() });
const defaults = { senders: [], receiveBufferBytes: 4_194_304 };

test.each<[string, unknown, object]>([
  ['an address', '127.0.0.1:8125', { listen: '127.0.0.1:8125' }],
  ['a map', { tcp: '127.0.0.1:1' }, { tcp: '127.0.0.1:1' }],
  ['a path alone', { unix: '/run/a' }, { unix: '/run/a' }],
  ['one prefix', { unix: '/run/a', prefix: 'one' }, { unix: '/run/a', prefixes: ['one'] }],
  ['prefixes', { unix: '/run/a', prefix: ['one', 'two'] }, { unix: '/run/a', prefixes: ['one', 'two'] }],
  ['an end of series', { unix: '/run/a', expire: '2h' }, { unix: '/run/a', expireMs: 7_200_000 }],
  [
    'the smallest buffer',
    { unix: '/run/a', receiveBufferBytes: 4096 },
    { unix: '/run/a', receiveBufferBytes: 4096 },
  ],
])('%s', (_, given, expected) => {
  expect(schema().parse(given)).toStrictEqual({ ...defaults, ...expected });
});

test.each(['10.1.2.3', '10.0.0.0/8', '10.1.2.3/32', '0.0.0.0/0', '::1', 'fd00::/8', 'fd00::/33', '::1/128'])(
  'a sender may be %s',
  (sender) => {
    expect(schema().parse({ unix: '/run/a', senders: [sender] }).senders).toEqual([sender]);
  },
);

test.each(['10.1.2', '10.1.2.256', '10.1.2.3/33', '10.1.2.3/', '::1/129', 'fd00:::/8', '1:2', 'host', ''])(
  'a sender may not be %j',
  (sender) => {
    const { error } = schema().safeParse({ unix: '/run/a', senders: [sender] });
    expect(JSON.stringify(error)).toContain('not an address or range; use the form 10.0.0.0/8 or fd00::/8');
  },
);

test.each<[string, unknown, string, boolean]>([
  ['nowhere', {}, 'no address to listen on', true],
  ['nowhere', null, 'no address to listen on', false],
  ['nowhere', 7, 'no address to listen on', false],
  ['TLS alone', { unix: '/run/a', tls: {} }, 'only to streams over TCP', true],
  ['TLS over TCP', { unix: '/run/a', tcp: '127.0.0.1:1', tls: {} }, 'only to streams over TCP', false],
  ['TCP without TLS', { tcp: '127.0.0.1:1' }, 'only to streams over TCP', false],
  // The path of a socket on Linux has 108 bytes with the NUL (man 7 unix).
  ['a long path', { unix: `/${'é'.repeat(53)}` }, 'longer than 107 bytes', false],
  ['a path that is too long', { unix: `/${'é'.repeat(53)}a` }, 'longer than 107 bytes', true],
  ['a small buffer', { unix: '/run/a', receiveBufferBytes: 4095 }, '4096', true],
])('%s: %j', (_, given, fault, isFault) => {
  expect(JSON.stringify(schema().safeParse(given).error ?? '').includes(fault)).toBe(isFault);
});
