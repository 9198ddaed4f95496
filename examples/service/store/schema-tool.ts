import pg from 'pg';
import { type DatabaseRole, databases } from '../world.ts';

/** Sets a schema's version, as a client of the store, which the service's schema tool is. */
export async function setVersion(port: number, role: DatabaseRole, version: string): Promise<void> {
  const { name } = databases[role];
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: 'svc',
    password: '',
    database: name,
    ssl: false,
  });
  // What breaks the connection between two statements; the statement after it says so.
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('UPDATE schema_version SET curr_version = $1 WHERE db_name = $2', [version, name]);
  } finally {
    await client.end();
  }
}
