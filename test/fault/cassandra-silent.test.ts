import type { Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { type FakeServer, frame, opcodes, requestOf, startServer } from '../cql-server.ts';
import { pollCassandra } from '../poll-cassandra.ts';
import { until } from '../until.ts';

let server: FakeServer;
afterEach(() => server.close());

/** Starts a check, aborts it once `asked` is true, and returns its result. */
async function giveUpOnce(asked: () => boolean) {
  const controller = new AbortController();
  const seen = pollCassandra({ port: server.port, user: 'agent', password: 'hunter2' }, controller.signal);
  await until('it was asked', asked);
  controller.abort();
  return seen;
}

test('a server that accepts and is silent is given up when the time is over', async () => {
  let bytes = 0;
  server = await startServer((socket) => void socket.on('data', (chunk) => (bytes += chunk.length)));
  const { fault } = await giveUpOnce(() => bytes > 0);
  expect(fault).toMatchObject({ reason: 'too_slow', msg: expect.stringMatching(/not one byte came back/) });
  await until('the connection is closed', () => server.open.size === 0);
});

test('a server that falls silent after its greeting is given up when the time is over', async () => {
  let queries = 0;
  const serve = (socket: Socket) =>
    void socket.on('data', (chunk) => {
      const { opcode, stream } = requestOf(chunk);
      if (opcode === opcodes.startup) socket.write(frame(opcodes.ready, stream));
      if (opcode === opcodes.query) queries++;
    });
  server = await startServer(serve);
  const { fault } = await giveUpOnce(() => queries > 0);
  expect(fault).toEqual({ reason: 'too_slow', msg: 'no answer in time' });
  await until('the connection is closed', () => server.open.size === 0);
});

test('a server that closes before it answers is told from one that is slow', async () => {
  server = await startServer((socket) => void socket.on('data', () => socket.end()));
  const { fault } = await pollCassandra({ port: server.port });
  expect(fault).toEqual({
    reason: 'reset',
    msg: 'the server closed the connection, which it also does when it has too many',
  });
});

test('nobody listens any more', async () => {
  server = await startServer(() => {});
  await server.close();
  const { fault } = await pollCassandra({ port: server.port });
  expect(fault).toMatchObject({ reason: 'refused' });
});

test('a check that is over before it begins opens nothing', async () => {
  let accepted = 0;
  server = await startServer(() => void accepted++);
  const { fault } = await pollCassandra({ port: server.port }, AbortSignal.abort());
  expect(fault).toBeDefined();
  expect(accepted).toBe(0);
});
