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
    'GRANT SELECT ON TABLE public.schema_version TO "my ""agent""";',
  ]);
});

test('each store under a heading, a database once, no password', () => {
  const text = printGrants([
    storeOn(5432, { databases: { persistence: 'orders', visibility: 'orders' }, password: 'hunter2' }),
    storeOn(5433, { name: 'other\nDROP TABLE x;', user: 'app', credentials: 'service', password: 'hunter2' }),
  ]);
  expect(text).not.toContain('hunter2');
  expect(text.split('\n').filter((line) => line.startsWith('--'))).toEqual([
    '-- Store main: postgres at 127.0.0.1:5432; for psql, as a superuser. Replace <password>.',
    '-- Store other DROP TABLE x;: postgres at 127.0.0.1:5433. The agent uses the service’s own user app: there is nothing to grant.',
  ]);
  expect(text.match(/GRANT CONNECT/g)).toHaveLength(1);
  expect(text).toContain('CREATE ROLE "svc_agent"');
  expect(text).not.toContain('"app"');
});

test('statements for MySQL and MariaDB; a comment that MariaDB executes has its one right more', () => {
  expect(grantStatements('mysql', 'svc_agent', ['svc', 'svc_visibility', 'svc'])).toEqual([
    "CREATE USER 'svc_agent'@'%' IDENTIFIED BY '<password>' WITH MAX_USER_CONNECTIONS 10;",
    '-- The state of replication and the end of the binary log; only MariaDB executes what is in /*M! */.',
    "GRANT REPLICATION CLIENT /*M!100502 , REPLICA MONITOR */ ON *.* TO 'svc_agent'@'%';",
    "-- For the check open_transactions; it also shows the statements of others: GRANT PROCESS ON *.* TO 'svc_agent'@'%';",
    '',
    "GRANT SELECT ON `svc`.`schema_version` TO 'svc_agent'@'%';",
    '-- Names and engines of the tables, not their rows.',
    "GRANT SHOW VIEW ON `svc`.* TO 'svc_agent'@'%';",
    '',
    "GRANT SELECT ON `svc_visibility`.`schema_version` TO 'svc_agent'@'%';",
    '-- Names and engines of the tables, not their rows.',
    "GRANT SHOW VIEW ON `svc\\_visibility`.* TO 'svc_agent'@'%';",
  ]);
  // A comment ends with its line.
  expect(grantStatements('mysql', 'a\nDROP', []).find((line) => line.includes('PROCESS'))).not.toContain(
    '\n',
  );
  const text = grantStatements('mysql', "o'brien", ['a`b']).join('\n');
  expect(text).toContain("TO 'o''brien'@'%'");
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
