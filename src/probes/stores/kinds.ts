import type { StoreKind } from './options.ts';
import type { StoreKindRow } from './store.ts';

/**
 * Statements that give a user what the checks need and no more, in the order in which they are run; `''` where a
 * blank line helps to read. A password in them is a placeholder.
 */
export type Grants = (user: string, databases: string[]) => string[];

interface Kind {
  /** Loads the driver. */
  row(): Promise<StoreKindRow>;
  grants(): Promise<Grants>;
  /** Reads the schema's version; `{database}` becomes the quoted name. */
  schemaQuery: string;
  /** How one leads in a comment of what `grants` gives. */
  comment: string;
  /** The program that those statements are for. */
  client: string;
}

/** The kinds of stores; a driver is loaded only for a kind that is configured. */
export const storeKindRows: Readonly<Record<StoreKind, Kind>> = {
  postgres: {
    row: async () => (await import('./postgres/postgres.ts')).postgres,
    grants: async () => (await import('./postgres/grants.ts')).grants,
    schemaQuery: 'SELECT curr_version FROM schema_version WHERE db_name = {database}',
    comment: '--',
    client: 'psql, as a superuser',
  },
  mysql: {
    row: async () => (await import('./mysql/mysql.ts')).mysql,
    grants: async () => (await import('./mysql/grants.ts')).grants,
    schemaQuery: 'SELECT curr_version FROM schema_version WHERE db_name = {database}',
    comment: '--',
    client: 'mysql or mariadb, as root',
  },
  widecolumn: {
    row: async () => (await import('./widecolumn/widecolumn.ts')).widecolumn,
    grants: async () => (await import('./widecolumn/grants.ts')).grants,
    schemaQuery: 'SELECT curr_version FROM schema_version WHERE keyspace_name = {database}',
    comment: '--',
    client: 'cqlsh, as a superuser',
  },
};
