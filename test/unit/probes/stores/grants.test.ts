import { expect, test } from 'vitest';
import { grantStatements, printGrants } from '../../../../src/probes/stores/store-grants.ts';
import { storeOn } from '../../../store-probe.ts';

test('statements for PostgreSQL, names quoted', () => {
  expect(grantStatements('postgres', 'my "agent"', ['orders'])).toEqual([
    `CREATE ROLE "my ""agent""" LOGIN PASSWORD '<password>' CONNECTION LIMIT 10;`,
    'GRANT pg_monitor TO "my ""agent""";',
    'GRANT CONNECT ON DATABASE "orders" TO "my ""agent""";',
    '\\connect "orders"',
    'GRANT USAGE ON SCHEMA public TO "my ""agent""";',
    '-- Does nothing while the database has no table schema_version: run it again once the schema is there.',
    `SELECT E'GRANT SELECT ON TABLE public.schema_version TO "my ""agent"""' WHERE to_regclass('public.schema_version') IS NOT NULL \\gexec`,
  ]);
});

test('each store under a heading, a database once, no password', () => {
  const text = printGrants([
    storeOn(5432, { databases: { persistence: 'orders', visibility: 'orders' }, password: 'hunter2' }),
    storeOn(5433, { name: 'other\nDROP TABLE x;', user: 'app', credentials: 'service', password: 'hunter2' }),
  ]);
  expect(text).not.toContain('hunter2');
  expect(text.split('\n').filter((line) => line.startsWith('-- Store'))).toEqual([
    '-- Store main: postgres at 127.0.0.1:5432; for psql, as a superuser. Replace <password>.',
    '-- Store other DROP TABLE x;: postgres at 127.0.0.1:5433. The agent uses the service’s own user app: there is nothing to grant.',
  ]);
  expect(text.match(/GRANT CONNECT/g)).toHaveLength(1);
  expect(text).toContain('CREATE ROLE "svc_agent"');
  expect(text).not.toContain('"app"');
});

test('statements for MySQL and MariaDB; a comment that MariaDB executes has its one right more', () => {
  expect(grantStatements('mysql', 'svc_agent', ['svc', 'svc_visibility', 'svc'])).toEqual([
    "CREATE USER 'svc_agent'@'%' IDENTIFIED BY '<password>' /*!50706 WITH MAX_USER_CONNECTIONS 10 */ /*M!100200 WITH MAX_USER_CONNECTIONS 10 */;",
    "-- On MySQL before 5.7.6 and MariaDB before 10.2 also run: GRANT USAGE ON *.* TO 'svc_agent'@'%' WITH MAX_USER_CONNECTIONS 10;",
    '-- The state of replication and the end of the binary log; only MariaDB executes what is in /*M! */.',
    "GRANT REPLICATION CLIENT /*M!100502 , REPLICA MONITOR */ ON *.* TO 'svc_agent'@'%';",
    "-- For the checks open_transactions and lock_waits; it also shows the statements of others: GRANT PROCESS ON *.* TO 'svc_agent'@'%';",
    '',
    '-- Names and engines of the tables, not their rows.',
    "GRANT SHOW VIEW ON `svc`.* TO 'svc_agent'@'%';",
    '-- Does nothing while the database has no table schema_version: run it again once the schema is there.',
    "SET @svc_agent = IF(EXISTS(SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'svc' AND TABLE_NAME = 'schema_version'), 'GRANT SELECT ON `svc`.`schema_version` TO ''svc_agent''@''%''', 'DO 0');",
    'PREPARE svc_agent FROM @svc_agent;',
    'EXECUTE svc_agent;',
    '',
    '-- Names and engines of the tables, not their rows.',
    "GRANT SHOW VIEW ON `svc\\_visibility`.* TO 'svc_agent'@'%';",
    '-- Does nothing while the database has no table schema_version: run it again once the schema is there.',
    "SET @svc_agent = IF(EXISTS(SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'svc_visibility' AND TABLE_NAME = 'schema_version'), 'GRANT SELECT ON `svc_visibility`.`schema_version` TO ''svc_agent''@''%''', 'DO 0');",
    'PREPARE svc_agent FROM @svc_agent;',
    'EXECUTE svc_agent;',
  ]);
  // A comment ends with its line.
  expect(grantStatements('mysql', 'a\nDROP', []).find((line) => line.includes('PROCESS'))).not.toContain(
    '\n',
  );
  const text = grantStatements('mysql', "o'brien", ['a`b']).join('\n');
  expect(text).toContain("TO 'o''brien'@'%'");
  expect(text).toContain("TO ''o''''brien''@''%''");
  expect(text).toContain('ON `a``b`.`schema_version`');
});

test('statements for Cassandra, keyspace by keyspace', () => {
  expect(grantStatements('widecolumn', 'svc_agent', ['svc', 'Vis"ibility'])).toEqual([
    `CREATE ROLE IF NOT EXISTS "svc_agent" WITH LOGIN = true AND PASSWORD = '<password>';`,
    'GRANT SELECT ON TABLE "svc".schema_version TO "svc_agent";',
    'GRANT SELECT ON TABLE "Vis""ibility".schema_version TO "svc_agent";',
    'GRANT SELECT ON TABLE system_views.settings TO "svc_agent";',
    'GRANT SELECT ON TABLE system_views.clients TO "svc_agent";',
    'GRANT SELECT ON TABLE system_views.gossip_info TO "svc_agent";',
    'GRANT SELECT ON TABLE system_views.snapshots TO "svc_agent";',
  ]);
});

test.each(['mysql', 'widecolumn'] as const)('%s has its statements too', (kind) => {
  const databases = { persistence: 'orders', visibility: 'orders_visibility' };
  const text = printGrants([storeOn(1, { kind, databases })]);
  expect(text).toContain('svc_agent');
  expect(text).toContain('orders_visibility');
});

test('a schema version that is read by a command or a query of its own needs no right on the table', () => {
  const databases = { persistence: 'orders' };
  for (const kind of ['mysql', 'postgres', 'widecolumn'] as const) {
    const byQuery = printGrants([
      storeOn(1, { kind, databases, schema: { query: 'SELECT v FROM versions' } }),
    ]);
    expect(byQuery).not.toContain('schema_version');
    expect(byQuery).toContain('-- The query schema.query of this store also needs SELECT on what it reads.');
    const byCommand = printGrants([storeOn(1, { kind, databases, schema: { command: ['schema-tool'] } })]);
    expect(byCommand).not.toMatch(/schema_version|schema\.query/);
  }
});
