import { type StoreKindName, type StoreOptions, storeRoles, usualStoreUser } from './store-options.ts';

/**
 * Statements that give a user what the checks need and no more, in the order in which they are run. `<password>` is
 * a placeholder.
 */
type Grants = (user: string, databases: readonly string[]) => string[];

/** Every agent has one session at a time; a session that is cut off may outlive its check on the server. */
const connectionsAtMost = 10;

const quoted = (mark: string) => (name: string) => `${mark}${name.replaceAll(mark, mark + mark)}${mark}`;
const doubleQuoted = quoted('"');
const backQuoted = quoted('`');

/** A comment ends with its line. */
const oneLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ');

/** A role that may log in, read the server's statistics, and read the version of each schema. */
const postgresGrants: Grants = (user, databases) => {
  const role = doubleQuoted(user);
  return [
    `CREATE ROLE ${role} LOGIN PASSWORD '<password>' CONNECTION LIMIT ${connectionsAtMost};`,
    `GRANT pg_monitor TO ${role};`,
    ...databases.flatMap((database) => [
      `GRANT CONNECT ON DATABASE ${doubleQuoted(database)} TO ${role};`,
      `\\connect ${doubleQuoted(database)}`,
      `GRANT USAGE ON SCHEMA public TO ${role};`,
      `GRANT SELECT ON TABLE public.schema_version TO ${role};`,
    ]),
  ];
};

const sqlText = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;

/** In a right on a whole database `_` and `%` in its name would match any character. */
const databasePattern = (database: string): string => backQuoted(database.replace(/[_%\\]/g, '\\$&'));

/** A user that may read the schema's version and no other row; without PROCESS. */
const mysqlGrants: Grants = (user, databases) => {
  const who = `${sqlText(user)}@'%'`;
  return [
    `CREATE USER ${who} IDENTIFIED BY '<password>' WITH MAX_USER_CONNECTIONS ${connectionsAtMost};`,
    '-- The state of replication and the end of the binary log; only MariaDB executes what is in /*M! */.',
    `GRANT REPLICATION CLIENT /*M!100502 , REPLICA MONITOR */ ON *.* TO ${who};`,
    oneLine(
      `-- For the check open_transactions; it also shows the statements of others: GRANT PROCESS ON *.* TO ${who};`,
    ),
    ...databases.flatMap((database) => [
      '',
      `GRANT SELECT ON ${backQuoted(database)}.\`schema_version\` TO ${who};`,
      '-- Names and engines of the tables, not their rows.',
      `GRANT SHOW VIEW ON ${databasePattern(database)}.* TO ${who};`,
    ]),
  ];
};

/**
 * `system.local`, `peers` and `system_schema` may be read by every login; `system_views` (4.0 and newer, the last two
 * tables 5.0 and newer) by none.
 */
const cassandraGrants: Grants = (user, keyspaces) => {
  const role = doubleQuoted(user);
  const tables = [
    ...keyspaces.map((keyspace) => `${doubleQuoted(keyspace)}.schema_version`),
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
export function grantStatements(kind: StoreKindName, user: string, databases: readonly string[]): string[] {
  return grants[kind].statements(user, [...new Set(databases)]);
}

/** For each store the statements that give the agent's user what the checks need and no more. */
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
}: StoreOptions): string[] {
  const head = `-- Store ${oneLine(name)}: ${kind} at ${address}`;
  if (credentials === 'service')
    return [`${head}. The agent uses the service’s own user ${oneLine(user)}: there is nothing to grant.`];
  const named = storeRoles.flatMap((role) => databases[role] ?? []);
  return [`${head}; for ${grants[kind].client}. Replace <password>.`, ...grantStatements(kind, user, named)];
}
