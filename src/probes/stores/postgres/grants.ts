import pg from 'pg';

/** Enough for a look beside one by hand. */
const connectionsAtMost = 3;

/** For `psql`: a role that may log in, see the server's statistics, and read the version of each schema. */
export function grants(user: string, databases: string[]): string[] {
  const role = pg.escapeIdentifier(user);
  return [
    `CREATE ROLE ${role} LOGIN PASSWORD '<password>' CONNECTION LIMIT ${connectionsAtMost};`,
    `GRANT pg_monitor TO ${role};`,
    ...databases.flatMap((database) => [
      `GRANT CONNECT ON DATABASE ${pg.escapeIdentifier(database)} TO ${role};`,
      `\\connect ${pg.escapeIdentifier(database)}`,
      `GRANT USAGE ON SCHEMA public TO ${role};`,
      `GRANT SELECT ON TABLE public.schema_version TO ${role};`,
    ]),
  ];
}
