import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asPostgres, ownedFolder, type Postgres } from './postgres.ts';

/** Prepares folders below `base` for pgBackRest, with one stanza that is called `main`. */
export function createPgBackRest(base: string) {
  const [config, repository] = [join(base, 'pgbackrest.conf'), join(base, 'repository')];
  for (const name of ['repository', 'log', 'lock', 'spool']) ownedFolder(join(base, name));
  const command = ['pgbackrest', `--config=${config}`, '--stanza=main'];
  return {
    repository,
    command,
    /** The command line of a command of pgBackRest. */
    tool: (...args: string[]) => asPostgres([...command, ...args]),
    archiveCommand: `${command.join(' ')} archive-push %p`,
    configure({ data, port, folder }: Postgres): void {
      writeFileSync(
        config,
        `[global]
repo1-path=${repository}
repo1-retention-full=9
log-path=${base}/log
lock-path=${base}/lock
spool-path=${base}/spool
start-fast=y
log-level-console=warn
[main]
pg1-path=${data}
pg1-port=${port}
pg1-socket-path=${folder}
pg1-user=postgres
`,
      );
    },
  };
}
