import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { lookAt, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

describe.skipIf(!hasPostgres)('in the middle of a query', () => {
  let server: Postgres;
  const hanging = () =>
    storeOn(server.port, { user: 'postgres', timeoutMs: 60_000, schema: { query: 'SELECT pg_sleep(600)' } });
  const looksOnServer = async () =>
    (
      await server.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'svc-agent' AND state = 'active'",
      )
    ).rows;
  const asking = () => pollUntil(looksOnServer, (rows) => rows.length === 1);

  beforeAll(async () => {
    server = await startPostgres({ settings: ['client_connection_check_interval=100ms'] });
  });
  afterAll(() => server?.stop());

  test('it takes too long: the connection is ended at once, and the server works for nobody', async () => {
    const stop = new AbortController();
    const looking = lookAt(hanging(), { signal: stop.signal });
    await asking();
    stop.abort();
    expect((await looking).reason).toBe('too_slow');
    await pollUntil(looksOnServer, (rows) => rows.length === 0);
  });

  test('the server is told how long it may take', async () => {
    const finding = await lookAt({ ...hanging(), timeoutMs: 300 }, { signal: new AbortController().signal });
    expect(finding.reason).toBe('too_slow');
    expect(finding.msg).toContain('57014');
  });

  test('a table that somebody has locked: its version is unknown, the store is up', async () => {
    await server.query('CREATE TABLE schema_version (db_name text, curr_version text)');
    await server.query('BEGIN; LOCK TABLE schema_version');
    const finding = await lookAt(storeOn(server.port, { user: 'postgres' }));
    await server.query('ROLLBACK');
    expect(finding.reason).toBeUndefined();
    expect(finding.details!.schemaUnknown).toContain('55P03');
  });

  test('the session is ended from outside', async () => {
    const looking = lookAt(hanging());
    const [row] = await asking();
    await server.query(`SELECT pg_terminate_backend(${row.pid})`);
    expect((await looking).reason).toBe('shutting_down');
  });

  test('the server is killed', async () => {
    const looking = lookAt(hanging());
    await asking();
    await server.kill();
    expect((await looking).reason).toMatch(/^(?:reset|shutting_down)$/);
    expect((await lookAt(hanging())).reason).toBe('refused');
  });
});
