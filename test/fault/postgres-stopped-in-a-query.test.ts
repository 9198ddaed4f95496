import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasPostgres, type Postgres, startPostgres } from '../postgres.ts';
import { checkStore, storeOn } from '../store-probe.ts';
import { pollUntil } from '../until.ts';

describe.skipIf(!hasPostgres)('in the middle of a query', () => {
  let server: Postgres;
  const hanging = () =>
    storeOn(server.port, { user: 'postgres', timeoutMs: 60_000, schema: { query: 'SELECT pg_sleep(600)' } });
  const pollsOnServer = async () =>
    (
      await server.query(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'svc-agent' AND state = 'active'",
      )
    ).rows;
  const asking = () => pollUntil(pollsOnServer, (rows) => rows.length === 1);

  beforeAll(async () => {
    server = await startPostgres({ settings: ['client_connection_check_interval=100ms'] });
  });
  afterAll(() => server?.stop());

  test('it takes too long: the connection is ended at once, and the server works for nobody', async () => {
    const stop = new AbortController();
    const pending = checkStore(hanging(), { signal: stop.signal });
    await asking();
    stop.abort();
    const finding = await pending;
    expect(finding.reason).toBe('too_slow');
    expect(Object.keys(finding.phasesMs!)).toEqual(['resolve', 'connect', 'first_byte', 'queries']);
    await pollUntil(pollsOnServer, (rows) => rows.length === 0);
  });

  test('the server is told how long it may take', async () => {
    const finding = await checkStore(
      { ...hanging(), timeoutMs: 300 },
      { signal: new AbortController().signal },
    );
    expect(finding.reason).toBe('too_slow');
    expect(finding.msg).toContain('57014');
  });

  test('a table that somebody has locked: its version is unknown, the store is up', async () => {
    await server.query('CREATE TABLE schema_version (db_name text, curr_version text)');
    await server.query('BEGIN; LOCK TABLE schema_version');
    const finding = await checkStore(storeOn(server.port, { user: 'postgres' }));
    await server.query('ROLLBACK');
    expect(finding.reason).toBeUndefined();
    expect(finding.details!.schemaUnknown).toContain('55P03');
  });

  test('the session is ended from outside', async () => {
    const pending = checkStore(hanging());
    const [row] = await asking();
    await server.query(`SELECT pg_terminate_backend(${row.pid})`);
    expect((await pending).reason).toBe('shutting_down');
  });

  test('the server is killed', async () => {
    const pending = checkStore(hanging());
    await asking();
    await server.kill();
    expect((await pending).reason).toMatch(/^(?:reset|shutting_down)$/);
    expect((await checkStore(hanging())).reason).toBe('refused');
  });
});
