import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cassandra, hasCassandra, startCassandra } from '../cassandra.ts';
import { between, type FakeServer, startServer } from '../cql-server.ts';
import { pollCassandra } from '../poll-cassandra.ts';
import { until } from '../until.ts';

/** Calls back as soon as the check asks for the schema's version, before the request reaches the server. */
const onceAsked = (call: () => void) => (request: string) => {
  if (request.includes('schema_version WHERE')) call();
  return undefined;
};

describe.skipIf(!hasCassandra)('Apache Cassandra under a check', () => {
  let server: Cassandra;
  let front: FakeServer;
  beforeAll(async () => {
    server = await startCassandra();
    await server.run(
      `CREATE KEYSPACE svc WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
    );
  });
  afterAll(async () => {
    await front?.close();
    await server?.remove();
  });

  test('stopped in the middle of a query, it is given up when the time is over, and well once it goes on', async () => {
    let stopped = 0;
    const stop = (): void => {
      stopped++;
      server.child.kill('SIGSTOP');
    };
    front = await startServer(between(server.port, onceAsked(stop)));
    const controller = new AbortController();
    const seen = pollCassandra({ port: front.port, database: 'svc' }, controller.signal);
    await until('the server is stopped', () => stopped > 0);
    controller.abort();
    expect(await seen).toEqual({ fault: { reason: 'too_slow', msg: 'no answer in time' } });
    server.child.kill('SIGCONT');
    await front.close();
    expect((await pollCassandra({ port: server.port, database: 'svc' })).found?.serverVersion).toMatch(
      /^5\./,
    );
  });

  test('killed in the middle of a query, the connection is reset, and then refused', async () => {
    const kill = () => void server.child.kill('SIGKILL');
    front = await startServer(between(server.port, onceAsked(kill)));
    const { fault } = await pollCassandra({ port: front.port, database: 'svc' });
    expect(fault).toMatchObject({ reason: 'reset' });
    await server.ended;
    expect(await pollCassandra({ port: server.port, database: 'svc' })).toMatchObject({
      fault: { reason: 'refused' },
    });
  });
});
