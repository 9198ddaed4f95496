import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { foldersOf, isProgram } from '../command.ts';
import { CannotLook } from './rehearsal.ts';

/** The folders in which packages install servers that are not on the path: Debian, then Red Hat. */
const postgresFolders = () => {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian) : [];
  const redHat = existsSync('/usr') ? readdirSync('/usr').filter((name) => name.startsWith('pgsql-')) : [];
  return [
    ...versions
      .sort((one, other) => Number(other) - Number(one))
      .map((version) => join(debian, version, 'bin')),
    ...redHat.map((name) => join('/usr', name, 'bin')),
  ];
};

/** Folders with the programs of a PostgreSQL server, the newest version first. */
export const postgresServers = (): string[] =>
  [...postgresFolders(), ...foldersOf(process.env.PATH)].filter((folder) =>
    ['initdb', 'postgres', 'psql', 'pg_restore'].every((name) => isProgram(join(folder, name))),
  );

/** The first of these programs that is installed. Throws CannotLook. */
export function programOf(names: readonly string[]): string {
  const [first = ''] = names;
  if (first.includes('/') && isProgram(first)) return first;
  for (const folder of [...foldersOf(process.env.PATH), '/usr/sbin', '/usr/local/sbin'])
    for (const name of names) if (isProgram(join(folder, name))) return join(folder, name);
  throw new CannotLook(
    `this host has no ${names[0]}; install the server, or rehearse on the host of the store`,
  );
}
