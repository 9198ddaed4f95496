import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { printGrants } from '../../src/probes/stores/store-grants.ts';
import { connectionTo, hasPostgres, type Postgres, postgresProgram, startPostgres } from '../postgres.ts';
import { checkGauges, checkStore, checksOf, gauge, storeOn } from '../store-probe.ts';

describe.skipIf(!hasPostgres)('rights in PostgreSQL', () => {
  let server: Postgres;
  const databases = { persistence: 'orders', visibility: 'Orders "visibility"' };
  const named = Object.values(databases);
  const store = (over = {}) =>
    storeOn(server.port, { user: 'svc_agent', databases, schema: { persistence: '0.8' }, ...over });

  beforeAll(async () => {
    server = await startPostgres({
      initdb: ['--data-checksums'],
      settings: ['archive_mode=on', 'archive_command=test -f %p', 'archive_timeout=60', 'fsync=on'],
    });
    for (const name of named) {
      const quoted = `"${name.replaceAll('"', '""')}"`;
      await server.query(`CREATE DATABASE ${quoted}`);
      await server.query(`REVOKE CONNECT ON DATABASE ${quoted} FROM PUBLIC`);
      await server.query(
        'CREATE TABLE schema_version (db_name text, curr_version text); REVOKE ALL ON SCHEMA public FROM PUBLIC',
        name,
      );
      await server.query(`INSERT INTO schema_version VALUES ('${name}', '0.8')`, name);
    }
    const statements = printGrants([store()]).replace('<password>', 'p-4-svc_agent');
    const connection = connectionTo(server);
    postgresProgram('psql', [...connection, '-v', 'ON_ERROR_STOP=1', '-X', '-q', 'postgres'], statements);
    await server.query('CREATE ROLE nobody LOGIN');
  });
  afterAll(() => server?.stop());

  test('what is printed is all that it takes: no check is unknown', async () => {
    for (const [role, name] of Object.entries(databases)) {
      const finding = await checkStore(store({ databases: { [role]: name }, schema: { [role]: '0.8' } }));
      expect(finding.reason).toBeUndefined();
      expect(Object.entries(checksOf(finding)).filter(([, holds]) => holds !== true)).toEqual([]);
      expect(Object.keys(checksOf(finding))).toEqual(
        expect.arrayContaining(['schema', 'wal_backlog', 'connections', 'archiver', 'checksum_failures']),
      );
    }
  });

  test('it is no more than it takes', async () => {
    const { rows } = await server.query(
      "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolconnlimit FROM pg_roles WHERE rolname = 'svc_agent'",
    );
    expect(rows).toEqual([
      {
        ...{ rolsuper: false, rolcreaterole: false, rolcreatedb: false, rolreplication: false },
        ...{ rolbypassrls: false, rolconnlimit: 10 },
      },
    ]);
    const rights = await server.query(
      "SELECT has_table_privilege('svc_agent', 'schema_version', 'INSERT, UPDATE, DELETE') AS writes",
      'orders',
    );
    expect(rights.rows).toEqual([{ writes: false }]);
  });

  test('a role with nothing but LOGIN: the store is up, what it may not see is unknown', async () => {
    await server.query('GRANT CONNECT ON DATABASE orders TO nobody');
    // Without USAGE on its schema the table looks missing to this role, although it exists.
    const finding = await checkStore(store({ user: 'nobody' }));
    expect(finding.reason).toBeUndefined();
    expect(checksOf(finding)).toMatchObject({
      schema: 'unknown',
      wal_backlog: 'unknown',
      archive_mode: true,
    });
    expect(checkGauges(finding)).not.toHaveProperty('wal_backlog');
    expect(Object.values(checksOf(finding))).not.toContain(false);
    expect(gauge(finding, 'svc_store_schema_compatible')).toBeUndefined();
    expect(gauge(finding, 'svc_store_connections_max')).toBeGreaterThan(0);
  });

  test('no right to the table', async () => {
    await server.query('GRANT USAGE ON SCHEMA public TO nobody', 'orders');
    const finding = await checkStore(store({ user: 'nobody' }));
    expect(finding.details!.schemaUnknown).toContain('permission denied for table schema_version');
    expect(finding.reason).toBeUndefined();
  });

  test('no right to connect', async () => {
    const finding = await checkStore(
      store({ user: 'nobody', databases: { visibility: databases.visibility } }),
    );
    expect(finding).toMatchObject({ reason: 'denied' });
    expect(finding.msg).toContain('permission denied for database');
  });

  test.each(['own', 'service'] as const)('whose credentials are in use is told: %s', async (credentials) => {
    const { details } = await checkStore(store({ credentials }));
    expect(details!.credentials).toContain(credentials === 'own' ? 'the agent’s own' : 'the service itself');
  });
});
