import { quoted } from '../backup-offsite.ts';
import {
  alone,
  cleanUp,
  entryOf,
  ofPrimary,
  type PlannedJob,
  type PlanTarget,
  pathTo,
  prune,
  readableForGroup,
  safe,
  stamp,
  timedFiles,
} from './job.ts';

export function planMysql(target: PlanTarget): readonly PlannedJob[] {
  const { host, port, database, store, role, directory, offsite } = target;
  const prefix = safe(`${store.name}-${role}`);
  const server = `--host=${quoted(host)} --port=${port}`;
  const connection = `${server} --user=backup`;
  const name = `\`${database.replaceAll('`', '``')}\``;
  const job = { name: `${prefix}-full`, type: 'full' } as const;
  const dump: PlannedJob = {
    ...job,
    cron: '0 2,14 * * *',
    once: dumpUser(name),
    script: [
      `mkdir -p ${quoted(directory)}`,
      `file=${pathTo(directory, `${prefix}-${stamp}.sql.gz`)}`,
      ...cleanUp(directory, prefix),
      'set -o pipefail',
      ...refuseReplica(connection),
      `mysqldump ${connection} --single-transaction --routines --triggers --events --hex-blob --master-data=2 -- ${quoted(database)} | gzip > "$file.part"`,
      'gzip --test "$file.part"',
      '# gzip passes a dump that was cut off before it was compressed; the last line shows that it is complete.',
      `gzip --decompress --stdout "$file.part" | tail -n 5 | grep -q '^-- Dump completed'`,
      '# Users and their rights belong to the server and are in no dump of a database.',
      ...dumpGrants(connection),
      'mv "$file.grants.part" "$file.grants.sql"',
      'mv "$file.part" "$file"',
      `(cd ${quoted(directory)} && sha256sum "$(basename "$file")" > "$file.sha256")`,
      ...offsite.copy(job.name, '"$file.grants.sql"'),
      ...offsite.copy(job.name, '"$file"'),
      prune(directory, prefix, 30),
    ],
    restore: [
      '# On a new server, restore the users first:',
      `mysql ${server} --user=root --force < FILE.grants.sql`,
      `mysql ${server} --user=root --execute=${quoted(`CREATE DATABASE IF NOT EXISTS ${name}`)}`,
      `gzip --decompress --stdout FILE | mysql ${server} --user=root ${quoted(database)}`,
    ],
    entry: {
      ...entryOf(target, job, { files: { ...timedFiles(directory, prefix, '.sql.gz'), ...ofPrimary } }),
      ...offsite.observed(job.name),
    },
  };
  return role === 'persistence'
    ? [dump, planPhysical(target, connection), planBinlog(target, server)]
    : [dump];
}

/** The right that the user needs on MariaDB to see whether the server is a replica; only MariaDB reads this comment. */
const seesReplicas = '/*M!100502 , REPLICA MONITOR */';

/** The statements that create the user of the jobs, with its rights. */
const dumpUser = (database: string): readonly string[] => [
  'With mysql, as root:',
  `  CREATE USER IF NOT EXISTS backup IDENTIFIED BY '<password>';`,
  `  GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON ${database}.* TO backup;`,
  `  GRANT PROCESS, RELOAD, REPLICATION CLIENT, REPLICATION SLAVE ${seesReplicas} ON *.* TO backup;`,
  'To copy the users and their rights; without this right, mysqldump of MariaDB leaves out the stored routines and reports no error:',
  '  GRANT SELECT ON mysql.* TO backup;',
  'To copy the stored routines of MySQL:',
  '  GRANT SHOW_ROUTINE ON *.* TO backup; -- MySQL',
];

/** Lines that dump the grants. The client of MariaDB writes them by itself; with MySQL each account is queried. */
const dumpGrants = (connection: string): readonly string[] => [
  'if mysqldump --version | grep -qi mariadb; then',
  '  # It names the accounts that the server itself cannot show, such as those of host names that it does not resolve.',
  `  mysqldump ${connection} --system=users --insert-ignore --force > "$file.grants.part" || grep -q '^GRANT ' "$file.grants.part"`,
  'else',
  `  mysql ${connection} --batch --skip-column-names --execute="SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user" |`,
  '    while read -r who; do',
  `      mysql ${connection} --batch --skip-column-names --execute="SHOW CREATE USER $who; SHOW GRANTS FOR $who"`,
  `    done | sed 's/$/;/' > "$file.grants.part"`,
  'fi',
];

/** Lines that refuse to run on a replica: neither a dump nor a copy of the files states how far a replica is behind. */
const refuseReplica = (connection: string): readonly string[] => [
  '# A replica lacks what it has not received yet. The statements are those of MariaDB, MySQL, and MySQL before 8.0.22:',
  `replica=$(mysql ${connection} --batch --skip-column-names --execute='SHOW ALL SLAVES STATUS' 2>/dev/null ||`,
  `  mysql ${connection} --batch --skip-column-names --execute='SHOW REPLICA STATUS' 2>/dev/null ||`,
  `  mysql ${connection} --batch --skip-column-names --execute='SHOW SLAVE STATUS')`,
  '[ -z "$replica" ] || { echo "this server is a replica: take the backup from the primary" >&2; exit 1; }',
];

/** The plan for a copy of the files of a whole MariaDB server, taken on its host. It must be prepared before it is used. */
function planPhysical({ store, directory, offsite }: PlanTarget, connection: string): PlannedJob {
  const prefix = safe(`${store.name}-physical`);
  const job = { name: prefix, type: 'full' } as const;
  return {
    ...job,
    cron: '0 3,15 * * *',
    once: [
      'MariaDB alone, on the host of the server, as a user that may read its files. With mysql, as root:',
      `  GRANT RELOAD, PROCESS, LOCK TABLES, REPLICATION CLIENT ${seesReplicas} ON *.* TO backup;`,
    ],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `folder=${pathTo(directory, `${prefix}-${stamp}`)}`,
      `trap 'rm -rf "$folder.part"' EXIT`,
      ...refuseReplica(connection),
      `mariabackup --backup ${connection} --target-dir="$folder.part"`,
      ...readableForGroup(directory, '"$folder.part"'),
      'mv "$folder.part" "$folder"',
      ...offsite.copy(prefix, '"$folder"', '/$(basename "$folder")'),
      prune(directory, prefix, 30),
    ],
    restore: [
      '# Prepare a copy: a prepared backup takes no further incremental backup.',
      'cp -a FOLDER PREPARED',
      'mariabackup --prepare --target-dir=PREPARED',
      '# With the server stopped and its data directory empty, as root:',
      'mariabackup --copy-back --target-dir=PREPARED --datadir=DATA_DIRECTORY',
      'chown -R mysql: DATA_DIRECTORY',
    ],
    entry: {
      ...entryOf({ store }, job, { files: { ...timedFiles(directory, prefix), ...ofPrimary } }),
      ...offsite.observed(prefix),
    },
  };
}

function planBinlog({ store, directory, offsite }: PlanTarget, server: string): PlannedJob {
  const name = safe(`${store.name}-binlog`);
  const connection = `${server} --user=backup`;
  const binlog = `${directory}/binlog`;
  const job = { name, type: 'log' } as const;
  return {
    ...job,
    cron: '*/2 * * * *',
    script: [
      `mkdir -p ${quoted(binlog)}`,
      ...alone(directory, name),
      `cd ${quoted(binlog)}`,
      '# Reads the newest copy again, or the first file of the server if there is no copy.',
      'first=$(ls | tail -n 1)',
      `[ -n "$first" ] || first=$(mysql ${connection} --batch --skip-column-names --execute='SHOW BINARY LOGS' | head -n 1 | cut -f 1)`,
      `mysqladmin ${connection} flush-logs`,
      `mysqlbinlog ${connection} --read-from-remote-server --raw --to-last-log "$first"`,
      '# The server still writes to the last one: its copy would end the chain.',
      'rm -f "$(ls | tail -n 1)"',
      ...offsite.copy(name, quoted(binlog)),
      '# Keeps the log for longer than the oldest dump.',
      `find ${quoted(binlog)} -type f -mtime +31 -delete`,
    ],
    restore: [
      '# After the dump, from the file and the position in its first lines (MASTER_LOG_FILE, MASTER_LOG_POS);',
      '# svc-agent recover database-corruption does both:',
      `mysqlbinlog --start-position=POSITION ${quoted(binlog)}/FILE ${quoted(binlog)}/LATER_FILES | mysql ${server} --user=root`,
    ],
    entry: {
      ...entryOf({ store }, job, { segments: { directory: binlog, log: 'binlog' } }),
      ...offsite.observed(name),
    },
  };
}
