import { afterEach, describe, expect, test } from 'vitest';
import type { Probe } from '../../src/probes/probe.ts';
import { planStores } from '../../src/probes/stores/stores.ts';
import { hasMariadb, startMariadb } from '../mariadb.ts';
import { hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { bench, storeOn } from '../store-probe.ts';

// A store that was well at the last check accepts nothing new since then: the next check says so. It does not prevent that change
// either.

const probes: Probe[] = [];
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const probe of probes.splice(0)) await probe.close?.();
  for (const stop of stops.splice(0)) await stop();
});

/** A probe that has checked the store and found it well. */
async function watched(options: Parameters<typeof storeOn>): Promise<() => Promise<string | undefined>> {
  const store = storeOn(...options);
  const [row] = planStores({ stores: [store] });
  const probe = await row!.open(bench().deps);
  probes.push(probe);
  const check = async () => (await probe.check(AbortSignal.timeout(store.timeoutMs), undefined)).reason;
  expect(await check()).toBeUndefined();
  return check;
}

describe.skipIf(!hasPostgres)('PostgreSQL', () => {
  const started = async (): Promise<Postgres> => {
    const server = await startPostgres();
    stops.push(() => server.stop());
    await server.query("CREATE ROLE agent LOGIN PASSWORD 'x'");
    await server.query('CREATE DATABASE svc');
    return server;
  };
  const svc = { user: 'agent', databases: { persistence: 'svc' } };

  test('a role that may not log in any more', async () => {
    const server = await started();
    const check = await watched([server.port, svc]);
    await server.query('ALTER ROLE agent NOLOGIN');
    expect(await check()).toBe('credentials');
    await server.query('ALTER ROLE agent LOGIN');
    expect(await check()).toBeUndefined();
  });

  test('a database that is renamed: the agent does not prevent it', async () => {
    const server = await started();
    const check = await watched([server.port, svc]);
    await server.query('ALTER DATABASE svc RENAME TO other');
    expect(await check()).toBe('database_missing');
  });

  test('a server that has stopped', async () => {
    const server = await started();
    const check = await watched([server.port, svc]);
    await server.stop();
    expect(await check()).toBe('refused');
  });
});

describe.skipIf(!hasMariadb)('MariaDB', () => {
  test('an account that is locked', async () => {
    const server = await startMariadb();
    stops.push(() => server.stop());
    await server.sql("CREATE USER agent@'127.0.0.1' IDENTIFIED BY 'x'");
    await server.sql('CREATE DATABASE svc');
    await server.sql("GRANT SELECT ON svc.* TO agent@'127.0.0.1'");
    const check = await watched([
      server.port,
      { kind: 'mysql', user: 'agent', password: 'x', databases: { persistence: 'svc' } },
    ]);
    await server.sql("ALTER USER agent@'127.0.0.1' ACCOUNT LOCK");
    expect(await check()).toBe('credentials');
  });
});
