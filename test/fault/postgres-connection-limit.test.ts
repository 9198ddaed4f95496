import pg from 'pg';
import { expect, test } from 'vitest';
import { hasPostgres, startPostgres } from '../postgres.ts';
import { checkStore, storeOn } from '../store-probe.ts';

test.skipIf(!hasPostgres)('no connection is left: of the role, then of the server', async () => {
  const server = await startPostgres({
    settings: ['max_connections=10', 'superuser_reserved_connections=3', 'max_wal_senders=0'],
  });
  const clients: pg.Client[] = [];
  try {
    await server.query('CREATE ROLE one LOGIN CONNECTION LIMIT 0; CREATE ROLE other LOGIN');
    expect((await checkStore(storeOn(server.port, { user: 'one' }))).reason).toBe('denied');
    expect((await checkStore(storeOn(server.port, { user: 'other' }))).reason).toBeUndefined();
    for (let count = 0; count < 7; count++) {
      const client = new pg.Client({ host: '127.0.0.1', port: server.port, user: 'postgres', ssl: false });
      clients.push(client);
      await client.connect();
    }
    const finding = await checkStore(storeOn(server.port, { user: 'other' }));
    expect(finding).toMatchObject({ reason: 'too_many_connections' });
    expect(finding.msg).toContain('53300');
  } finally {
    for (const client of clients) await client.end();
    await server.stop();
  }
});
