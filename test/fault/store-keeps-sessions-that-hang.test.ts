import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createTrace } from '../../src/probes/connection.ts';
import { mysql } from '../../src/probes/stores/mysql-poll.ts';
import { postgres } from '../../src/probes/stores/postgres-poll.ts';
import { createStoreServer } from '../../src/probes/stores/store-connections.ts';
import type { StoreKind, StoreTarget } from '../../src/probes/stores/store-report.ts';
import {
  hasMariadb,
  schemaStatements,
  startMariadb,
  targetOf as targetOfMariadb,
  usersStatements,
} from '../mariadb.ts';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { pollUntil } from '../until.ts';

// A server whose statements hang, as they do while its disk is full, notices only at their end that the client is gone.

interface Hanging {
  kind: StoreKind;
  target: StoreTarget;
  database: string;
  /** The statement that hangs. */
  query: string;
  /** The number of statements that hang, as the server counts them. */
  sessions(): Promise<number>;
  /** Ends them. */
  endAll(): Promise<unknown>;
}

async function staysBelowItsLimit({ kind, target, database, query, sessions, endAll }: Hanging) {
  const server = createStoreServer({ intervalMs: 1 }, kind, systemClock);
  const poll = async (schema: { query?: string }, signal: AbortSignal) =>
    server.poll(target, { database, schema }, createTrace(), signal).then(
      () => undefined,
      (thrown: unknown) => kind.faultOf(thrown),
    );
  for (let hung = 1; hung <= 3; hung++) {
    const limit = new AbortController();
    const fault = poll({ query }, limit.signal);
    expect(await pollUntil(sessions, (count) => count === hung)).toBe(hung);
    limit.abort(new Error('no result in time'));
    expect(await fault).toBeDefined();
  }
  const never = new AbortController().signal;
  for (let round = 0; round < 3; round++)
    expect(await poll({ query }, never)).toEqual({
      reason: 'too_slow',
      msg: 'the server is still busy with 3 earlier statements of the agent, which got no answer',
    });
  expect(await sessions()).toBe(3);
  await endAll();
  expect(await pollUntil(sessions, (count) => count === 0)).toBe(0);
  expect(await poll({ query: "SELECT '0.8'" }, never)).toBeUndefined();
}

test.skipIf(!hasMariadb)(
  'MariaDB keeps at most three sessions of the agent whose statements hang',
  async () => {
    const server = await startMariadb();
    onTestFinished(() => server.stop());
    await server.sql(schemaStatements('svc_main'));
    await server.sql(usersStatements);
    const hanging = () =>
      server.sql(
        "SELECT id FROM information_schema.PROCESSLIST WHERE user = 'full' AND info LIKE '%SLEEP(600)%'",
      );
    const { database, ...target } = targetOfMariadb(server, { timeoutMs: 600_000 });
    await staysBelowItsLimit({
      ...{ kind: mysql, target, database: database!, query: 'SELECT SLEEP(600)' },
      sessions: async () => (await hanging()).length,
      endAll: async () => {
        for (const { id } of await hanging()) await server.sql(`KILL ${id}`);
      },
    });
  },
);

test.skipIf(!hasPostgres)(
  'PostgreSQL keeps at most three sessions of the agent whose statements hang',
  async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const hanging =
      "FROM pg_stat_activity WHERE application_name = 'svc-agent' AND query LIKE '%pg_sleep(600)%'";
    await staysBelowItsLimit({
      kind: postgres,
      target: {
        ...{ store: 'main', address: { host: '127.0.0.1', port: server.port }, user: 'postgres' },
        ...{ databases: ['postgres'], timeoutMs: 600_000 },
      },
      ...{ database: 'postgres', query: 'SELECT pg_sleep(600)' },
      sessions: async () => (await server.query(`SELECT 1 ${hanging}`)).rows.length,
      endAll: () => server.query(`SELECT pg_terminate_backend(pid) ${hanging}`),
    });
  },
);
