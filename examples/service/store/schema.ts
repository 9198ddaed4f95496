import { databaseRoles, databases } from '../world.ts';

/** The table by which the service knows how new its schema is; both databases are one here, told apart by the name. */
export const setUp = `
  CREATE TABLE schema_version (db_name text PRIMARY KEY, creation_time timestamp, curr_version text,
    min_compatible_version text);
  INSERT INTO schema_version VALUES ${databaseRoles
    .map((role) => databases[role])
    .map(({ name, version }) => `('${name}', now(), '${version}', '0.1')`)
    .join(', ')};`;
