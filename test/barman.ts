import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asPostgres, ownedFolder, type Postgres, postgresPrograms } from './postgres.ts';

/** Prepares folders below `base` for Barman, with one server that is called `main`. */
export function createBarman(base: string) {
  const [config, home] = [join(base, 'barman.conf'), join(base, 'barman')];
  const incoming = join(home, 'main/incoming');
  for (const path of [home, join(home, 'main'), incoming, join(base, 'lock'), join(base, 'none.d')])
    ownedFolder(path);
  const tool = (...args: string[]) => asPostgres(['barman', '-c', config, ...args]);
  const barman = tool().join(' ');
  const wals = join(home, 'main/wals');
  return {
    config,
    home,
    wals,
    /** The command line of a command of Barman. */
    tool,
    archiveCommand: `cp %p ${incoming}/%f`,
    /** The script as the documentation prints it. */
    report: `${barman} -f json list-backups main; ${barman} -f json show-backup main latest || true`,
    /** The folder of the archived segments of the first 2^32 bytes. */
    walFolder: () => join(wals, readdirSync(wals).find((name) => /^[0-9A-F]{16}$/.test(name))!),
    configure({ folder, port }: Postgres): void {
      const connection = `host=${folder} port=${port} user=postgres`;
      writeFileSync(
        config,
        `[barman]
barman_home=${home}
barman_user=postgres
configuration_files_directory=${base}/none.d
barman_lock_directory=${base}/lock
log_file=${base}/lock/barman.log
[main]
description=main
conninfo=${connection} dbname=postgres
streaming_conninfo=${connection}
backup_method=postgres
path_prefix=${postgresPrograms}
archiver=on
immediate_checkpoint=true
`,
        { mode: 0o644 },
      );
    },
  };
}
