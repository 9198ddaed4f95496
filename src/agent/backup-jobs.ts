import type { BackupType } from '../core/reasons.ts';
import type { StoreOptions } from '../probes/stores/store-options.ts';
import { type OffsiteCopies, quoted } from './backup-offsite.ts';

/** The jobs of one database, by the kind of its store. */

export interface PlannedJob {
  name: string;
  type: BackupType;
  cron: string;
  /** What has to be there before the first run. */
  once?: readonly string[];
  /** Shell lines, run with `set -eu`. */
  script: readonly string[];
  /** Shell lines for the day when it is needed; never run by a schedule. */
  restore: readonly string[];
  /** Entry of `backups`. */
  entry: Record<string, unknown>;
}

/** Time of a backup in its name, as a shell writes it. */
export const stamp = '$(date -u +%Y%m%dT%H%M%SZ)';

export interface PlanTarget {
  /** Where the backups are written. */
  directory: string;
  offsite: OffsiteCopies;
  store: StoreOptions;
  role: string;
  database: string;
  host: string;
  port: number;
}

type Planner = (target: PlanTarget) => readonly PlannedJob[];

export const planners: Readonly<Record<StoreOptions['kind'], Planner>> = {
  postgres: planPostgres,
  mysql: planMysql,
  widecolumn: planWideColumn,
};

function entryOf(
  { store, role }: PlanTarget,
  name: string,
  type: BackupType,
  rest: object,
): Record<string, unknown> {
  return { name, store: store.name, database: role, type, ...rest };
}

/** A dump that failed leaves nothing behind, nor does one that was killed longer than an hour ago. */
const cleanUp = (directory: string, prefix: string) => [
  `trap 'rm -f "$file.part"' EXIT`,
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*.part' -mmin +60 -delete`,
];

const prune = (directory: string, prefix: string, days: number) =>
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*' -mtime +${days} -exec rm -r {} +`;

function planPostgres(target: PlanTarget): readonly PlannedJob[] {
  const { host, port, database, store, role, directory, offsite } = target;
  const prefix = `${store.name}-${role}`;
  const server = `--host=${quoted(host)} --port=${port}`;
  const connection = `${server} --username=backup`;
  const file = `${directory}/${prefix}-${stamp}.dump`;
  return [
    {
      name: `${prefix}-full`,
      type: 'full',
      cron: '0 2 * * *',
      once: [
        'By psql as a superuser (PostgreSQL 14 and later):',
        `  CREATE ROLE backup LOGIN REPLICATION PASSWORD '<password>';`,
        '  GRANT pg_read_all_data TO backup;',
      ],
      script: [
        `mkdir -p ${quoted(directory)}`,
        `file=${file}`,
        ...cleanUp(directory, prefix),
        `pg_dump --format=custom ${connection} --file="$file.part" ${quoted(database)}`,
        '# Goes through all data: the table of contents alone finds neither truncation nor corruption.',
        'pg_restore --file=/dev/null "$file.part"',
        'mv "$file.part" "$file"',
        `(cd ${directory} && sha256sum "$(basename "$file")" > "$file.sha256")`,
        ...offsite.copy(`${prefix}-full`, '"$file"'),
        prune(directory, prefix, 30),
      ],
      restore: [
        `createdb ${server} --username=postgres ${quoted(database)} || true`,
        `pg_restore ${server} --username=postgres --dbname=${quoted(database)} --jobs=4 --clean --if-exists --exit-on-error FILE`,
      ],
      entry: entryOf(target, `${prefix}-full`, 'full', {
        source: { files: { directory, pattern: `^${prefix}-(?<time>\\d{8}T\\d{6}Z)\\.dump$` } },
        integrity: { level: 'full' },
        ...offsite.observed(`${prefix}-full`),
      }),
    },
    ...(role === 'persistence' ? [planBaseBackup(target, connection), planWal(target)] : []),
  ];
}

const debianPath = 'PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr " " :)';

/** The write-ahead log belongs to the server, so that one base backup and one archive serve all its databases. */
function planBaseBackup({ store, directory, offsite }: PlanTarget, connection: string): PlannedJob {
  const prefix = `${store.name}-base`;
  return {
    name: prefix,
    type: 'full',
    cron: '0 3 * * *',
    once: ['The user backup needs a line of the type replication in pg_hba.conf.'],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `folder=${directory}/${prefix}-${stamp}`,
      `pg_basebackup ${connection} --pgdata="$folder" --wal-method=none --checkpoint=fast --manifest-checksums=SHA256`,
      '# Debian keeps it out of the path. The agent compares each file with the manifest, too.',
      debianPath,
      'pg_verifybackup --no-parse-wal "$folder"',
      ...offsite.copy(prefix, '"$folder"', '/$(basename "$folder")'),
      prune(directory, prefix, 30),
    ],
    restore: [
      debianPath,
      'pg_verifybackup --no-parse-wal FOLDER',
      '# With the server stopped and its data directory empty, as root:',
      'cp -a FOLDER/. DATA_DIRECTORY/',
      `echo "restore_command = 'cp ${directory}/wal/%f %p'" >> DATA_DIRECTORY/postgresql.auto.conf`,
      'touch DATA_DIRECTORY/recovery.signal',
      'chown -R postgres: DATA_DIRECTORY',
    ],
    entry: {
      name: prefix,
      store: store.name,
      type: 'full',
      source: { files: { directory, pattern: `^${prefix}-(?<time>\\d{8}T\\d{6}Z)$` } },
      integrity: { level: 'checksum' },
      ...offsite.observed(prefix),
    },
  };
}

function planWal({ store, directory, offsite }: PlanTarget): PlannedJob {
  const name = `${store.name}-wal`;
  return {
    name,
    type: 'log',
    cron: '15 * * * *',
    once: [
      'The server archives by itself. As root on its host:',
      `  install -d -o postgres ${quoted(directory)} ${quoted(`${directory}/wal`)}`,
      'In postgresql.conf:',
      '  archive_mode = on',
      '  archive_timeout = 300',
      `  archive_command = 'test ! -f ${directory}/wal/%f && cp %p ${directory}/wal/%f.part && mv ${directory}/wal/%f.part ${directory}/wal/%f'`,
    ],
    script: [
      '# Copies and prunes what the server has archived.',
      ...offsite.copy(name, `--exclude='*.part' ${quoted(`${directory}/wal`)}`),
      `find ${directory}/wal -type f -mtime +7 -delete`,
    ],
    restore: ['# The segments are read by the restore_command of the base backup.'],
    entry: {
      name,
      store: store.name,
      type: 'log',
      source: { segments: { directory: `${directory}/wal`, log: 'wal' } },
      ...offsite.observed(name),
    },
  };
}

function planMysql(target: PlanTarget): readonly PlannedJob[] {
  const { host, port, database, store, role, directory, offsite } = target;
  const prefix = `${store.name}-${role}`;
  const server = `--host=${quoted(host)} --port=${port}`;
  const connection = `${server} --user=backup`;
  const name = `\`${database.replaceAll('`', '``')}\``;
  const dump: PlannedJob = {
    name: `${prefix}-full`,
    type: 'full',
    cron: '0 2 * * *',
    once: [
      'By mysql as root:',
      `  CREATE USER IF NOT EXISTS backup IDENTIFIED BY '<password>';`,
      `  GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON ${name}.* TO backup;`,
      '  GRANT PROCESS, RELOAD, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO backup;',
      'Without one of these, mysqldump leaves the stored routines out and reports no error:',
      '  GRANT SELECT ON mysql.proc TO backup; -- MariaDB',
      '  GRANT SHOW_ROUTINE ON *.* TO backup; -- MySQL',
    ],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `file=${directory}/${prefix}-${stamp}.sql.gz`,
      ...cleanUp(directory, prefix),
      'set -o pipefail',
      `mysqldump ${connection} --single-transaction --routines --triggers --events --hex-blob --master-data=2 ${quoted(database)} | gzip > "$file.part"`,
      'gzip --test "$file.part"',
      '# gzip passes a dump that was cut off before it was compressed; the last line shows that it is complete.',
      `gzip --decompress --stdout "$file.part" | tail -n 5 | grep -q '^-- Dump completed'`,
      'mv "$file.part" "$file"',
      `(cd ${directory} && sha256sum "$(basename "$file")" > "$file.sha256")`,
      ...offsite.copy(`${prefix}-full`, '"$file"'),
      prune(directory, prefix, 30),
    ],
    restore: [
      `mysql ${server} --user=root --execute=${quoted(`CREATE DATABASE IF NOT EXISTS ${name}`)}`,
      `gzip --decompress --stdout FILE | mysql ${server} --user=root ${quoted(database)}`,
    ],
    entry: entryOf(target, `${prefix}-full`, 'full', {
      source: { files: { directory, pattern: `^${prefix}-(?<time>\\d{8}T\\d{6}Z)\\.sql\\.gz$` } },
      integrity: { level: 'full' },
      ...offsite.observed(`${prefix}-full`),
    }),
  };
  return role === 'persistence' ? [dump, planBinlog(target, server)] : [dump];
}

function planBinlog({ store, directory, offsite }: PlanTarget, server: string): PlannedJob {
  const name = `${store.name}-binlog`;
  const connection = `${server} --user=backup`;
  return {
    name,
    type: 'log',
    cron: '*/5 * * * *',
    script: [
      `mkdir -p ${directory}/binlog && cd ${directory}/binlog`,
      '# The newest copy is read again, because it may have been incomplete; without copies, the first file of the server.',
      'first=$(ls | tail -n 1)',
      `[ -n "$first" ] || first=$(mysql ${connection} --batch --skip-column-names --execute='SHOW BINARY LOGS' | head -n 1 | cut -f 1)`,
      `mysqladmin ${connection} flush-logs`,
      `mysqlbinlog ${connection} --read-from-remote-server --raw --to-last-log "$first"`,
      ...offsite.copy(name, quoted(`${directory}/binlog`)),
      `find ${directory}/binlog -type f -mtime +7 -delete`,
    ],
    restore: [
      '# After the dump, from the file and the position in its first lines (MASTER_LOG_FILE, MASTER_LOG_POS):',
      `mysqlbinlog --start-position=POSITION ${directory}/binlog/FILE ${directory}/binlog/LATER_FILES | mysql ${server} --user=root`,
    ],
    entry: {
      name,
      store: store.name,
      type: 'log',
      source: { segments: { directory: `${directory}/binlog`, log: 'binlog' } },
      ...offsite.observed(name),
    },
  };
}

const wideColumnData = '/var/lib/cassandra/data';

/** Commands for the directory `below` of each table, in the layout of a data directory: each copy is known by its table. */
const eachTable = (database: string, copies: string, below: string, lines: readonly string[]) => [
  `for folder in ${wideColumnData}/${quoted(database)}/*/${below}; do`,
  '  [ -d "$folder" ] || continue',
  `  copy=${quoted(copies)}/\${folder#${wideColumnData}/}`,
  '  mkdir -p "$copy"',
  ...lines.map((line) => `  ${line}`),
  'done',
];

function planSnapshots(target: PlanTarget, prefix: string, copies: string): PlannedJob {
  const { database, offsite } = target;
  const [name, keyspace] = [`${prefix}-full`, quoted(database)];
  return {
    name,
    type: 'full',
    cron: '0 2 * * *',
    script: [
      '# On every node; in the entry of its agent, HOSTNAME is what hostname prints there:',
      `name=${prefix}-${stamp}`,
      `nodetool snapshot --tag "$name" ${keyspace}`,
      ...eachTable(database, copies, 'snapshots/"$name"', ['cp -p "$folder"/* "$copy"']),
      '# The copies are the backup; the snapshot would keep the disk of the node full.',
      `nodetool clearsnapshot -t "$name" ${keyspace}`,
      ...offsite.copyEach(
        name,
        `${quoted(copies)}/${keyspace}/*/snapshots/"$name"`,
        `/$(hostname)/$name/$(basename "\${copy%/snapshots/*}")`,
      ),
      `find ${quoted(copies)} -path '*/snapshots/*' -prune -mtime +30 -exec rm -r {} +`,
    ],
    restore: [
      '# On every node, with the schema restored and the tables empty, for each table:',
      // Without the option it would move the files out of the backup.
      `nodetool import --copy-data ${keyspace} TABLE ${copies}/${database}/TABLE-ID/snapshots/NAME`,
    ],
    entry: entryOf(target, name, 'full', {
      source: { snapshot: { dataDirectory: copies, keyspace: database } },
      integrity: { level: 'full' },
      ...offsite.observed(name, 'HOSTNAME'),
    }),
  };
}

function planIncrementals(target: PlanTarget, prefix: string, copies: string): PlannedJob {
  const { database, offsite } = target;
  const name = `${prefix}-incremental`;
  return {
    name,
    type: 'incremental',
    cron: '30 * * * *',
    script: [
      '# On every node, with incremental_backups: true in cassandra.yaml. Before the flush, the newest rows are in memory only:',
      '# the start of this job is the recovery point.',
      `nodetool flush ${quoted(database)}`,
      ...eachTable(database, copies, 'backups', [
        'find "$folder" -maxdepth 1 -type f -exec mv -n -t "$copy" {} +',
      ]),
      ...offsite.copy(name, `--include='*/backups/*' ${quoted(copies)}`, '/$(hostname)'),
      `find ${quoted(copies)} -path '*/backups/*' -type f -mtime +8 -delete`,
    ],
    restore: [
      '# After the snapshot, for each table:',
      `nodetool import --copy-data ${quoted(database)} TABLE ${copies}/${database}/TABLE-ID/backups`,
    ],
    entry: entryOf(target, name, 'incremental', {
      source: { incrementals: { dataDirectory: copies, keyspace: database } },
      integrity: { level: 'full' },
    }),
  };
}

function planWideColumn(target: PlanTarget): readonly PlannedJob[] {
  const prefix = `${target.store.name}-${target.role}`;
  const copies = `${target.directory}/${prefix}`;
  return [planSnapshots(target, prefix, copies), planIncrementals(target, prefix, copies)];
}
