import type { ReadSecret } from '../../core/access.ts';
import { formatAddress } from '../../core/address.ts';
import { createTrace } from '../connection.ts';
import { type CassandraRow, cassandraFault, connect as connectCassandra } from './cassandra-connection.ts';
import { mysqlFault, openSession as openMysql } from './mysql-connection.ts';
import { openSession as openPostgres, postgresFault } from './postgres-connection.ts';
import { escapedText, sqlText } from './sql-text.ts';
import type { StoreKindName, StoreOptions } from './store-options.ts';
import { createRedact, targetOf } from './store-probe.ts';
import type { StoreFault, StoreTarget } from './store-report.ts';

/** The sessions that are connected to a database. */
export type Sessions =
  /** One text for each session except the agent's own: user, program, address. */
  | { open: readonly string[]; isDown?: undefined; unknown?: undefined }
  /** The store refuses connections, so it has no sessions. */
  | { isDown: true; open?: undefined; unknown?: undefined }
  | { unknown: string; open?: undefined; isDown?: undefined };

interface SessionsOfKind {
  /** Reads the sessions. Throws what the driver throws. */
  read(target: StoreTarget, database: string, signal: AbortSignal): Promise<Sessions>;
  faultOf(thrown: unknown): StoreFault;
}

const ownName = 'svc-agent';

/**
 * In PostgreSQL every user sees the database, the user and the application of all sessions, but `backend_type` only for the
 * sessions of its own unless it is in `pg_monitor`.
 */
const postgres: SessionsOfKind = {
  async read(target, database, signal) {
    const session = await openPostgres(target, undefined, createTrace(), signal);
    const text = sqlText(database);
    try {
      const { answers } = await session.ask([
        {
          sql: `SELECT usename AS who, application_name AS program, host(client_addr) AS address FROM pg_stat_activity
            WHERE datname = ${text} AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
              AND application_name <> '${ownName}' AND coalesce(backend_type, 'client backend') = 'client backend'`,
        },
      ]);
      const [answer] = answers;
      return answer?.rows
        ? { open: answer.rows.map(described) }
        : { unknown: answer?.unknown ?? 'no answer' };
    } finally {
      await session.close();
    }
  },
  faultOf: postgresFault,
};

/** The agent's own connections to MySQL select no database. */
const mysql: SessionsOfKind = {
  async read(target, database, signal) {
    const session = await openMysql(target, createTrace(), signal);
    try {
      const { results, refusal } = await session.run([
        "SELECT COUNT(*) AS n FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS'",
        `SELECT USER AS who, HOST AS address FROM information_schema.PROCESSLIST WHERE DB = ${escapedText(database)} AND ID <> CONNECTION_ID()`,
      ]);
      if (refusal) return { unknown: refusal.message };
      const [rights, sessions = []] = results;
      if (rights?.[0]?.n === '0')
        return { unknown: 'the user of the agent sees its own sessions only; GRANT PROCESS ON *.* to it' };
      return { open: sessions.map(described) };
    } finally {
      await session.close();
    }
  },
  faultOf: mysqlFault,
};

/** The sessions on this node of a Cassandra cluster. A client that names no keyspace may use any. */
const cassandra: SessionsOfKind = {
  async read(target, database, signal) {
    const connection = await connectCassandra(target, createTrace(), signal);
    try {
      const rows = await connection.query('SELECT * FROM system_views.clients');
      return { open: rows.filter((row) => !isOwn(row) && mayUse(row, database)).map(describedClient) };
    } finally {
      await connection.close();
    }
  },
  faultOf: cassandraFault,
};

const isOwn = ({ client_options: options }: CassandraRow) =>
  (options as Record<string, unknown> | null | undefined)?.APPLICATION_NAME === ownName;
const mayUse = ({ keyspace_name: name }: CassandraRow, keyspace: string) =>
  name === undefined || name === null || name === '' || name === keyspace;
const describedClient = ({ username, driver_name, address, port }: CassandraRow) =>
  described({ who: username, program: driver_name, address: `${address}:${port}` });

const described = ({ who, program, address }: Readonly<Record<string, unknown>>): string =>
  [who ?? 'unknown user', program && `(${program})`, address && `from ${address}`].filter(Boolean).join(' ');

const kinds: Readonly<Record<StoreKindName, SessionsOfKind>> = { postgres, mysql, widecolumn: cassandra };

/** The present sessions in one database or keyspace. Never throws. */
export async function sessionsOf(
  store: StoreOptions,
  database: string,
  readSecret: ReadSecret,
  signal: AbortSignal,
): Promise<Sessions> {
  const kind = kinds[store.kind];
  let password: string | undefined;
  try {
    password = store.password === undefined ? undefined : await readSecret(store.password);
    return await kind.read(targetOf(store, password), database, signal);
  } catch (thrown) {
    const { reason, msg } = kind.faultOf(thrown);
    if (reason === 'refused') return { isDown: true };
    const { address } = targetOf(store, undefined);
    return { unknown: `${formatAddress(address)}: ${createRedact(password)(msg)}` };
  }
}
