import { expect, test } from 'vitest';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { checkStore, gauge, storeOn } from '../store-probe.ts';

test.skipIf(!hasPostgres)('a database that is not there, then one without the table', async () => {
  const server = await startPostgres();
  try {
    const store = storeOn(server.port, {
      user: 'postgres',
      databases: { persistence: 'orders' },
      schema: { persistence: '0.8' },
    });
    expect(await checkStore(store)).toMatchObject({
      reason: 'database_missing',
      msg: 'database "orders" does not exist (3D000)',
    });
    await server.query('CREATE DATABASE orders');
    const finding = await checkStore(store);
    expect(finding.reason).toBeUndefined();
    expect(finding.details!.schemaMissing).toBe('orders has no tables');
    expect(gauge(finding, 'svc_store_schema_compatible')).toBe(0);
    await server.query('CREATE TABLE executions (id int)', 'orders');
    expect((await checkStore(store)).details!.schemaMissing).toBe('orders has no table schema_version');
    expect(gauge(finding, 'svc_store_schema_version_info')).toBeUndefined();
    expect(gauge(finding, 'svc_store_connections_max')).toBeGreaterThan(0);
  } finally {
    await server.stop();
  }
});
