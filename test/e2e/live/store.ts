import { existsSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { ownedFolder, postgresFolder, startPostgres } from '../../postgres.ts';

/** A PostgreSQL that passes all checks until the test changes it. */
export interface Store {
  /** The port, which changes when the server starts again. */
  readonly port: number;
  /** Ends the server; `begin` starts it again with the same data. */
  halt(): Promise<void>;
  begin(): Promise<void>;
  /** Sets the version that the schema reports. */
  setSchema(version: string): Promise<unknown>;
  setReadOnly(isReadOnly: boolean): void;
  /** Sets whether commits are written before they are acknowledged, as a store should do. */
  setDurable(isDurable: boolean): void;
  /** Sets whether a segment is archived after a minute at the latest, or only when it is full. */
  setArchiveTimeout(has: boolean): void;
  /** Uses all but four of the connections for plain users. */
  crowd(): Promise<void>;
  disperse(): Promise<void>;
  /** Makes a session wait for a lock that a prepared transaction holds. */
  block(): Promise<void>;
  unblock(): Promise<unknown>;
  /** Makes archiving fail, with a segment that has waited for ten minutes. */
  clogArchive(): Promise<void>;
  clearArchive(): Promise<unknown>;
  stop(): Promise<void>;
}

export const storeDatabase = 'svc_main';

const usable = 60;
const reserved = 3;

export async function startStore(): Promise<Store> {
  const archive = postgresFolder();
  const stuck = join(archive, 'stuck');
  ownedFolder(join(archive, 'log'));
  const server = await startPostgres({
    initdb: ['--data-checksums'],
    settings: [
      ...['fsync=on', 'archive_mode=on', 'archive_timeout=60'],
      `archive_command=test ! -e ${stuck} && cp %p ${join(archive, 'log')}/%f`,
      ...[`max_connections=${usable + reserved}`, `superuser_reserved_connections=${reserved}`],
      'max_prepared_transactions=1',
    ],
  });
  const waiting = join(server.data, 'pg_wal', 'archive_status');
  const crowd: pg.Client[] = [];
  let blocked: Promise<unknown> | undefined;
  const changed = new Map<string, string>();
  const set = (name: string, value: string) => {
    changed.set(name, value);
    server.configure([...changed].map(([key, text]) => `${key}=${text}`));
  };
  /** Writes even while the server's usual transaction is read-only. */
  const write = (sql: string) => server.query(`BEGIN READ WRITE; ${sql}; COMMIT`, storeDatabase);
  const closeSegment = () =>
    server.query("SELECT pg_logical_emit_message(false, 'test', 'x'); SELECT pg_switch_wal()");

  await server.query(`CREATE DATABASE ${storeDatabase}`);
  await server.query('CREATE USER plain');
  await write(`CREATE TABLE schema_version (db_name text, curr_version text);
    INSERT INTO schema_version VALUES ('${storeDatabase}', '0.8')`);
  return {
    get port() {
      return server.port;
    },
    halt: server.kill,
    begin: server.restart,
    setSchema: (version) => write(`UPDATE schema_version SET curr_version = '${version}'`),
    setReadOnly: (isReadOnly) => set('default_transaction_read_only', isReadOnly ? 'on' : 'off'),
    setDurable: (isDurable) => set('fsync', isDurable ? 'on' : 'off'),
    setArchiveTimeout: (has) => set('archive_timeout', has ? '60' : '0'),
    async crowd() {
      for (let taken = crowd.length; taken < usable - 4; taken++) {
        const client = new pg.Client({
          host: '127.0.0.1',
          port: server.port,
          user: 'plain',
          database: 'postgres',
        });
        client.on('error', () => {});
        await client.connect();
        crowd.push(client);
      }
    },
    async disperse() {
      await Promise.all(crowd.splice(0).map((client) => client.end()));
    },
    async block() {
      await write('CREATE TABLE IF NOT EXISTS held (n int)');
      await server.query("BEGIN READ WRITE; LOCK TABLE held; PREPARE TRANSACTION 'stuck'", storeDatabase);
      const client = new pg.Client({
        host: '127.0.0.1',
        port: server.port,
        user: 'postgres',
        database: storeDatabase,
      });
      client.on('error', () => {});
      await client.connect();
      blocked = client
        .query('SELECT FROM held')
        .catch(() => {})
        .finally(() => client.end());
    },
    async unblock() {
      await server.query("ROLLBACK PREPARED 'stuck'", storeDatabase);
      await blocked;
    },
    async clogArchive() {
      if (!existsSync(stuck)) {
        writeFileSync(stuck, '');
        await closeSegment();
      }
      const then = Date.now() / 1000 - 600;
      for (const name of readdirSync(waiting))
        if (name.endsWith('.ready')) utimesSync(join(waiting, name), then, then);
    },
    clearArchive() {
      rmSync(stuck, { force: true });
      return closeSegment();
    },
    async stop() {
      await server.stop();
      rmSync(archive, { recursive: true, force: true });
    },
  };
}
