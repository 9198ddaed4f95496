/** A name between double quotes, so that its case and odd characters stay. */
export const quotedName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A text between single quotes. */
export const quotedText = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/**
 * The least that a look needs, as exact CQL for a superuser; `<password>` is to be replaced. `system.local`, `peers`
 * and `system_schema` may be read by every login; `system_views` (Cassandra 4.0 and newer) by nobody without a grant.
 */
export function grants(user: string, keyspaces: readonly string[]): string[] {
  const role = quotedName(user);
  const tables = [
    ...keyspaces.map((keyspace) => `${quotedName(keyspace)}.schema_version`),
    'system_views.settings',
    'system_views.clients',
  ];
  return [
    `CREATE ROLE IF NOT EXISTS ${role} WITH LOGIN = true AND PASSWORD = '<password>';`,
    ...tables.map((table) => `GRANT SELECT ON TABLE ${table} TO ${role};`),
  ];
}
