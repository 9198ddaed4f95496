import { identifier, literal } from './answer.ts';

/** The runner never has two looks at a store; a second agent and a hand at `svc-agent probe` need one each. */
const mostConnections = 3;

/** In a right on a whole database `_` and `%` of its name would stand for any character. */
function pattern(database: string): string {
  return identifier(database.replace(/[_%\\]/g, '\\$&'));
}

/**
 * Statements that make a user who may see what the checks need: no row of any table but the schema's version, no
 * PROCESS. MariaDB wants one more than MySQL, which stands there as a comment.
 */
export function grants(user: string, databases: readonly string[]): string[] {
  const who = `${literal(user)}@'%'`;
  return [
    `CREATE USER ${who} IDENTIFIED BY '<password>' WITH MAX_USER_CONNECTIONS ${mostConnections};`,
    '-- Whether the server copies another, and where its binary log stands.',
    `GRANT REPLICATION CLIENT ON *.* TO ${who};`,
    `-- MariaDB also: GRANT REPLICA MONITOR ON *.* TO ${who};`,
    ...[...new Set(databases)].flatMap((database) => [
      '',
      `GRANT SELECT ON ${identifier(database)}.\`schema_version\` TO ${who};`,
      '-- Names and engines of the tables, nothing that is in them.',
      `GRANT SHOW VIEW ON ${pattern(database)}.* TO ${who};`,
    ]),
  ];
}
