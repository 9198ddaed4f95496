import { escapedText } from './sql-text.ts';
import { type StoreKindName, type StoreOptions, storeRoles, usualStoreUser } from './store-options.ts';

/**
 * Creates the statements that give a user exactly the rights that the checks need, in the order in which they are run.
 * `<password>` is a placeholder. If `readsTable` is false, the version of the schema does not come from its table.
 */
type Grants = (user: string, databases: readonly string[], readsTable: boolean) => string[];

/**
 * The number of connections that the user may have. Every agent has one session at a time; a session that is cut off may outlive
 * its check on the server.
 */
const connectionsAtMost = 10;

const quoted = (mark: string) => (name: string) => `${mark}${name.replaceAll(mark, mark + mark)}${mark}`;
const doubleQuoted = quoted('"');
const backQuoted = quoted('`');

/** A text on one line: a comment ends with its line. */
const oneLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ');

/** A block for a database that may have no schema yet: then the statement does nothing, and the statements after it still run. */
const tableNotice =
  '-- Does nothing while the database has no table schema_version: run it again once the schema is there.';

/** The grants for a role that may log in, read the server's statistics, and read the version of each schema. */
const postgresGrants: Grants = (user, databases, readsTable) => {
  const role = doubleQuoted(user);
  return [
    `CREATE ROLE ${role} LOGIN PASSWORD '<password>' CONNECTION LIMIT ${connectionsAtMost};`,
    `GRANT pg_monitor TO ${role};`,
    ...databases.flatMap((database) => [
      `GRANT CONNECT ON DATABASE ${doubleQuoted(database)} TO ${role};`,
      `\\connect ${doubleQuoted(database)}`,
      `GRANT USAGE ON SCHEMA public TO ${role};`,
      ...(readsTable
        ? [
            tableNotice,
            `SELECT E${escapedText(`GRANT SELECT ON TABLE public.schema_version TO ${role}`)} WHERE to_regclass('public.schema_version') IS NOT NULL \\gexec`,
          ]
        : []),
    ]),
  ];
};

/** The name of a database as a pattern: in a right on a whole database, `_` and `%` would match any character. */
const databasePattern = (database: string): string => backQuoted(database.replace(/[_%\\]/g, '\\$&'));

/**
 * The grants for a user that may read the schema's version and no other row; without PROCESS. MySQL 5.7.6 and MariaDB 10.2 are
 * the first versions that accept a limit in CREATE USER; MariaDB ignores comments for MySQL 5.7 and newer.
 */
const mysqlGrants: Grants = (user, databases, readsTable) => {
  const who = `${escapedText(user)}@'%'`;
  const limit = `WITH MAX_USER_CONNECTIONS ${connectionsAtMost}`;
  return [
    `CREATE USER ${who} IDENTIFIED BY '<password>' /*!50706 ${limit} */ /*M!100200 ${limit} */;`,
    oneLine(
      `-- On MySQL before 5.7.6 and MariaDB before 10.2 also run: GRANT USAGE ON *.* TO ${who} ${limit};`,
    ),
    '-- The state of replication and the end of the binary log; only MariaDB executes what is in /*M! */.',
    `GRANT REPLICATION CLIENT /*M!100502 , REPLICA MONITOR */ ON *.* TO ${who};`,
    oneLine(
      `-- For the checks open_transactions and lock_waits; it also shows the statements of others: GRANT PROCESS ON *.* TO ${who};`,
    ),
    ...databases.flatMap((database) => [
      '',
      '-- Names and engines of the tables, not their rows.',
      `GRANT SHOW VIEW ON ${databasePattern(database)}.* TO ${who};`,
      ...(readsTable ? grantOnTable(database, who) : []),
    ]),
  ];
};

/** The grant on a table: MySQL refuses a right on a table that does not exist. */
const grantOnTable = (database: string, who: string): string[] => {
  const grant = `GRANT SELECT ON ${backQuoted(database)}.\`schema_version\` TO ${who}`;
  const isThere = `SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = ${escapedText(database)} AND TABLE_NAME = 'schema_version'`;
  return [
    tableNotice,
    `SET @svc_agent = IF(EXISTS(${isThere}), ${escapedText(grant)}, 'DO 0');`,
    'PREPARE svc_agent FROM @svc_agent;',
    'EXECUTE svc_agent;',
  ];
};

/**
 * The grants for a wide-column store. Every login may read `system.local`, `peers` and `system_schema`; no login may read
 * `system_views` (4.0 and newer, the last two tables 5.0 and newer).
 */
const cassandraGrants: Grants = (user, keyspaces, readsTable) => {
  const role = doubleQuoted(user);
  const tables = [
    ...(readsTable ? keyspaces.map((keyspace) => `${doubleQuoted(keyspace)}.schema_version`) : []),
    'system_views.settings',
    'system_views.clients',
    'system_views.gossip_info',
    'system_views.snapshots',
  ];
  return [
    `CREATE ROLE IF NOT EXISTS ${role} WITH LOGIN = true AND PASSWORD = '<password>';`,
    ...tables.map((table) => `GRANT SELECT ON TABLE ${table} TO ${role};`),
  ];
};

const grants: Readonly<Record<StoreKindName, { statements: Grants; client: string }>> = {
  postgres: { statements: postgresGrants, client: 'psql, as a superuser' },
  mysql: { statements: mysqlGrants, client: 'mysql or mariadb, as root' },
  widecolumn: { statements: cassandraGrants, client: 'cqlsh, as a superuser' },
};

/** The statements for one kind of store. */
export function grantStatements(
  kind: StoreKindName,
  user: string,
  databases: readonly string[],
  readsTable = true,
): string[] {
  return grants[kind].statements(user, [...new Set(databases)], readsTable);
}

/** For each store, the statements that give the agent's user exactly the rights that the checks need. */
export function printGrants(stores: readonly StoreOptions[]): string {
  return stores
    .map((store) =>
      grantsFor(store)
        .map((line) => `${line}\n`)
        .join(''),
    )
    .join('\n');
}

function grantsFor({
  name,
  kind,
  address,
  user = usualStoreUser,
  credentials,
  databases,
  schema: { command, query },
}: StoreOptions): string[] {
  const head = `-- Store ${oneLine(name)}: ${kind} at ${address}`;
  if (credentials === 'service')
    return [`${head}. The agent uses the service’s own user ${oneLine(user)}: there is nothing to grant.`];
  const named = storeRoles.flatMap((role) => databases[role] ?? []);
  const readsTable = command === undefined && query === undefined;
  return [
    `${head}; for ${grants[kind].client}. Replace <password>.`,
    ...grantStatements(kind, user, named, readsTable),
    ...(query === undefined
      ? []
      : ['-- The query schema.query of this store also needs SELECT on what it reads.']),
  ];
}
