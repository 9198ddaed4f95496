import type { Socket } from 'node:net';
import { assert, asyncProperty, uint8Array } from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { storeFailureReasons } from '../../src/core/reasons.ts';
import {
  errorBody,
  type FakeServer,
  frame,
  opcodes,
  requestOf,
  shortText,
  startServer,
} from '../cql-server.ts';
import { pollCassandra } from '../poll-cassandra.ts';
import { bench, checkStore, storeOn } from '../store-probe.ts';
import { until } from '../until.ts';

let server: FakeServer;
afterEach(() => server.close());

/** Answers the greeting, then each request that follows, once. */
const answering =
  (...answers: ((stream: number) => Buffer)[]) =>
  (socket: Socket): void => {
    const rest = [...answers];
    socket.on('data', (chunk) => {
      const answer = rest.shift();
      if (answer !== undefined) socket.write(answer(requestOf(chunk).stream));
    });
  };
const ready = (stream: number) => frame(opcodes.ready, stream);

const cases: Record<string, { serve: (socket: Socket) => void; reason: string; msg: RegExp }> = {
  'greets like another database before it is asked': {
    serve: (socket) => void socket.write(Buffer.from('4a0000000a352e352e352d', 'hex')),
    reason: 'protocol',
    msg: /not CQL: it begins with the bytes 4a0000000a352e35$/,
  },
  'answers in HTTP': {
    serve: answering(() => Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')),
    reason: 'protocol',
    msg: /not CQL: an HTTP server answers there$/,
  },
  'greets like an SSH server': {
    serve: (socket) => void socket.write('SSH-2.0-OpenSSH_9.2\r\n'),
    reason: 'protocol',
    msg: /not CQL: it begins with "SSH-2\.0-"$/,
  },
  'wants TLS': {
    serve: answering(() => Buffer.from('15030300020228', 'hex')),
    reason: 'protocol',
    msg: /not CQL: it begins with the bytes 15030300020228$/,
  },
  'sends an opcode that does not exist': {
    serve: answering((stream) => frame(0x77, stream)),
    reason: 'protocol',
    msg: /not CQL: .*opcode: 119/,
  },
  'cuts an error off': {
    serve: answering((stream) => frame(opcodes.error, stream, Buffer.from([0, 0]))),
    reason: 'protocol',
    msg: /not CQL/,
  },
  'speaks an older version only': {
    serve: answering((stream) =>
      frame(opcodes.error, stream, errorBody(0x0a, 'Invalid or unsupported protocol version (4)'), 0x83),
    ),
    reason: 'protocol',
    msg: /unsupported protocol version/,
  },
  'says ready, then sends rows that end too soon': {
    serve: answering(ready, (stream) => frame(opcodes.result, stream, Buffer.from([0, 0, 0, 2, 0, 0]))),
    reason: 'protocol',
    msg: /not CQL/,
  },
  'has no row of itself': {
    serve: answering(ready, (stream) => frame(opcodes.result, stream, Buffer.from([0, 0, 0, 1]))),
    reason: 'query_failed',
    msg: /^system\.local has no row$/,
  },
  'closes in the middle of a frame': {
    serve: answering((stream) => frame(opcodes.ready, stream).subarray(0, 5)),
    reason: 'reset',
    msg: /./,
  },
};

test.each(Object.entries(cases))('a server that %s', async (name, { serve, reason, msg }) => {
  server = await startServer((socket) => {
    serve(socket);
    if (name.startsWith('closes')) socket.on('data', () => socket.end());
  });
  const { fault } = await pollCassandra({
    port: server.port,
    user: 'agent',
    password: 'hunter2',
    database: 'svc',
  });
  expect(fault).toMatchObject({ reason, msg: expect.stringMatching(msg) });
  await until('the connection is closed', () => server.open.size === 0);
});

test('a server that sends the password back', async () => {
  const serve = answering(
    (stream) => frame(opcodes.authenticate, stream, shortText('org.example.Authenticator')),
    (stream) => frame(opcodes.error, stream, errorBody(0x0100, 'hunter2 is not the password')),
  );
  server = await startServer(serve);
  const password = 'hunter2';
  const deps = bench().deps;
  const login = { user: 'agent', password, databases: { persistence: 'svc' } };
  const finding = await checkStore(storeOn(server.port, { kind: 'widecolumn', ...login }), { deps });
  expect(finding).toMatchObject({
    reason: 'credentials',
    msg: expect.stringContaining('*** is not the password'),
  });
  expect(JSON.stringify(finding)).not.toContain(password);
});

test('a frame that never ends is not kept', async () => {
  const part = Buffer.alloc(1024 * 1024);
  server = await startServer((socket) => {
    const endless = frame(opcodes.ready, 0);
    endless.writeUInt32BE(0xffff_ffff, 5);
    const more = (): void => {
      while (socket.writable && socket.write(part));
    };
    socket.on('drain', more);
    socket.write(endless);
    more();
  });
  const { fault } = await pollCassandra({ port: server.port });
  expect(fault).toEqual({ reason: 'protocol', msg: `the answers have more than ${16 * 1024 * 1024} bytes` });
});

test('whatever bytes come, the check ends with a reason and the process lives', async () => {
  let bytes: Buffer = Buffer.alloc(0);
  server = await startServer((socket) => {
    socket.end(bytes);
  });
  const possible = new Set<string>(storeFailureReasons);
  await assert(
    asyncProperty(uint8Array({ minLength: 1, maxLength: 60 }), async (random) => {
      // Half of them look like answers to the greeting at first.
      const answer = frame(random[0]! % 0x11, 0, Buffer.from(random));
      bytes = random.length % 2 === 0 ? answer : Buffer.from(random);
      const { fault } = await pollCassandra({ port: server.port, user: 'agent', password: 'hunter2' });
      expect(possible).toContain(fault?.reason);
    }),
    { numRuns: 200 },
  );
});
