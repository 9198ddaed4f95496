import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { expect, test } from 'vitest';
import { checkStore, checksOf, gauge, storeOn } from '../store-probe.ts';

test('PostgreSQL embedded in a program, by the wire', async () => {
  const db = await PGlite.create();
  await db.exec(
    "CREATE TABLE schema_version (db_name text, curr_version text); INSERT INTO schema_version VALUES ('postgres', '0.10')",
  );
  const server = new PGLiteSocketServer({ db, port: 0, host: '127.0.0.1' });
  await server.start();
  const port = Number((server.getServerConn() as string).split(':')[1]);
  try {
    for (const _ of [1, 2]) {
      const finding = await checkStore(storeOn(port, { user: 'postgres', schema: { persistence: '0.9' } }));
      expect(finding.reason).toBeUndefined();
      expect(finding.details!.schema).toBe('0.10');
      expect(gauge(finding, 'svc_store_schema_compatible')).toBe(1);
      expect(checksOf(finding)).toMatchObject({ schema: true, uptime: true });
    }
  } finally {
    await server.stop();
    await db.close();
  }
});
