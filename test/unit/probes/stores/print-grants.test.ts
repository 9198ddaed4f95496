import { expect, test } from 'vitest';
import { printGrants } from '../../../../src/probes/stores/grants.ts';
import { grants } from '../../../../src/probes/stores/postgres/grants.ts';
import { storeOn } from '../../../store-probe.ts';

test('statements for PostgreSQL, names quoted', () => {
  expect(grants('my "agent"', ['orders'])).toEqual([
    `CREATE ROLE "my ""agent""" LOGIN PASSWORD '<password>' CONNECTION LIMIT 3;`,
    'GRANT pg_monitor TO "my ""agent""";',
    'GRANT CONNECT ON DATABASE "orders" TO "my ""agent""";',
    '\\connect "orders"',
    'GRANT USAGE ON SCHEMA public TO "my ""agent""";',
    'GRANT SELECT ON TABLE public.schema_version TO "my ""agent""";',
  ]);
});

test('each store under a heading, a database once, no password', async () => {
  const text = await printGrants([
    storeOn(5432, { databases: { persistence: 'orders', visibility: 'orders' }, password: 'hunter2' }),
    storeOn(5433, { name: 'other\nDROP TABLE x;', user: 'app', credentials: 'service', password: 'hunter2' }),
  ]);
  expect(text).not.toContain('hunter2');
  expect(text.split('\n').filter((line) => line.startsWith('--'))).toEqual([
    '-- Store main: postgres at 127.0.0.1:5432; for psql, as a superuser. Put a password in place of <password>.',
    '-- Store other DROP TABLE x;: postgres at 127.0.0.1:5433. The agent takes the service’s own user app: nothing to do.',
  ]);
  expect(text.match(/GRANT CONNECT/g)).toHaveLength(1);
  expect(text).toContain('CREATE ROLE "svc_agent"');
  expect(text).not.toContain('"app"');
});

test.each(['mysql', 'widecolumn'] as const)('%s has its statements too', async (kind) => {
  const databases = { persistence: 'orders', visibility: 'orders_visibility' };
  const text = await printGrants([storeOn(1, { kind, databases })]);
  expect(text).toContain('svc_agent');
  expect(text).toContain('orders_visibility');
});
