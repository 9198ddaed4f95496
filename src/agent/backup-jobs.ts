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

interface PlanTarget {
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

/** Names of jobs, entries and files: a store may be called anything. */
const safe = (name: string) => name.replace(/[^\w.-]/g, '_');

/** A name in a regular expression. */
const literal = (text: string) => text.replace(/[.]/g, '\\.');

/** A path of which the end is expanded by the shell, such as a time. */
const pathTo = (directory: string, expanded: string) => `${quoted(`${directory}/`)}${expanded}`;

/** A path in a command of PostgreSQL, in which a percent sign begins a placeholder. */
const inCommand = (path: string) => quoted(path).replaceAll('%', '%%');

/** Text between the single quotes of a setting of PostgreSQL. */
const inSetting = (text: string) => text.replaceAll("'", "''");

/** A dump that failed leaves nothing behind, nor does one that was killed longer than an hour ago. */
const cleanUp = (directory: string, prefix: string) => [
  `trap 'rm -f "$file.part" "$file".*.part' EXIT`,
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*.part' -mmin +60 -delete`,
];

/** A run that is still under way is not run beside itself. */
const alone = (directory: string, name: string) => [
  `exec 9> ${quoted(`${directory}/.${name}.lock`)}`,
  'flock --nonblock 9 || exit 0',
];

const prune = (directory: string, prefix: string, days: number) =>
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*' -mtime +${days} -exec rm -r {} +`;

function planPostgres(target: PlanTarget): readonly PlannedJob[] {
  const { host, port, database, store, role, directory, offsite } = target;
  const prefix = safe(`${store.name}-${role}`);
  const server = `--host=${quoted(host)} --port=${port}`;
  const connection = `${server} --username=backup`;
  const file = pathTo(directory, `${prefix}-${stamp}.dump`);
  return [
    {
      name: `${prefix}-full`,
      type: 'full',
      cron: '0 2,14 * * *',
      once: [
        'By psql as a superuser (PostgreSQL 14 and later):',
        `  CREATE ROLE backup LOGIN REPLICATION PASSWORD '<password>';`,
        '  GRANT pg_read_all_data TO backup;',
      ],
      script: [
        `mkdir -p ${quoted(directory)}`,
        `file=${file}`,
        ...cleanUp(directory, prefix),
        `pg_dump --format=custom ${connection} --file="$file.part" --dbname=${quoted(database)}`,
        '# Goes through all data: the table of contents alone finds neither truncation nor corruption.',
        'pg_restore --file=/dev/null "$file.part"',
        '# Roles and their rights belong to the server and are in no dump; passwords only a superuser can read.',
        `pg_dumpall ${connection} --globals-only --no-role-passwords --file="$file.globals.part"`,
        'mv "$file.globals.part" "$file.globals.sql"',
        'mv "$file.part" "$file"',
        `(cd ${quoted(directory)} && sha256sum "$(basename "$file")" > "$file.sha256")`,
        ...offsite.copy(`${prefix}-full`, '"$file.globals.sql"'),
        ...offsite.copy(`${prefix}-full`, '"$file"'),
        prune(directory, prefix, 30),
      ],
      restore: [
        '# On a new server the roles first; their passwords are set by hand (existing roles are reported, and stay):',
        `psql ${server} --username=postgres --dbname=postgres --file=FILE.globals.sql`,
        `createdb ${server} --username=postgres ${quoted(database)} || true`,
        `pg_restore ${server} --username=postgres --dbname=${quoted(database)} --jobs=4 --clean --if-exists --exit-on-error FILE`,
      ],
      entry: entryOf(target, `${prefix}-full`, 'full', {
        source: {
          files: {
            directory,
            pattern: `^${literal(prefix)}-(?<time>\\d{8}T\\d{6}Z)\\.dump$`,
            timeZone: 'UTC',
          },
        },
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
  const prefix = safe(`${store.name}-base`);
  return {
    name: prefix,
    type: 'full',
    cron: '0 3,15 * * *',
    once: ['The user backup needs a line of the type replication in pg_hba.conf.'],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `folder=${pathTo(directory, `${prefix}-${stamp}`)}`,
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
      '# What an earlier recovery left in the settings would end this one:',
      "sed -i '/^ *recovery_target/d' DATA_DIRECTORY/postgresql.auto.conf",
      `echo ${quoted(`restore_command = '${inSetting(`cp ${inCommand(`${directory}/wal`)}/%f %p`)}'`)} >> DATA_DIRECTORY/postgresql.auto.conf`,
      'touch DATA_DIRECTORY/recovery.signal',
      'chown -R postgres: DATA_DIRECTORY',
    ],
    entry: {
      name: prefix,
      store: store.name,
      type: 'full',
      source: { files: { directory, pattern: `^${literal(prefix)}-(?<time>\\d{8}T\\d{6}Z)$` } },
      integrity: { level: 'checksum' },
      ...offsite.observed(prefix),
    },
  };
}

function planWal({ store, directory, offsite }: PlanTarget): PlannedJob {
  const name = safe(`${store.name}-wal`);
  const wal = `${directory}/wal`;
  const place = inCommand(wal);
  const archive = `test ! -f ${place}/%f && cp %p ${place}/%f.part && mv ${place}/%f.part ${place}/%f`;
  return {
    name,
    type: 'log',
    // With the archive_timeout within the recovery point objective of 5 minutes.
    cron: '*/2 * * * *',
    once: [
      'The server archives by itself. As root on its host:',
      `  install -d -o postgres ${quoted(directory)} ${quoted(wal)}`,
      'In postgresql.conf:',
      '  archive_mode = on',
      '  archive_timeout = 120',
      `  archive_command = '${inSetting(archive)}'`,
    ],
    script: [
      '# Copies what the server has archived, and prunes what the oldest base backup does not need.',
      ...alone(directory, name),
      ...offsite.copy(name, `--exclude='*.part' ${quoted(wal)}`),
      `oldest=$(find ${quoted(directory)} -maxdepth 1 -name '${safe(`${store.name}-base`)}-*' -type d | sort | head -n 1)`,
      '[ -f "$oldest/backup_label" ] || exit 0',
      `first=$(sed -n 's/^START WAL LOCATION: .*(file \\([0-9A-F]\\{24\\}\\)).*/\\1/p' "$oldest/backup_label")`,
      debianPath,
      `[ -z "$first" ] || pg_archivecleanup ${quoted(wal)} "$first"`,
    ],
    restore: ['# The segments are read by the restore_command of the base backup.'],
    entry: {
      name,
      store: store.name,
      type: 'log',
      source: { segments: { directory: wal, log: 'wal' } },
      integrity: { level: 'full' },
      ...offsite.observed(name),
    },
  };
}

function planMysql(target: PlanTarget): readonly PlannedJob[] {
  const { host, port, database, store, role, directory, offsite } = target;
  const prefix = safe(`${store.name}-${role}`);
  const server = `--host=${quoted(host)} --port=${port}`;
  const connection = `${server} --user=backup`;
  const name = `\`${database.replaceAll('`', '``')}\``;
  const dump: PlannedJob = {
    name: `${prefix}-full`,
    type: 'full',
    cron: '0 2,14 * * *',
    once: [
      'By mysql as root:',
      `  CREATE USER IF NOT EXISTS backup IDENTIFIED BY '<password>';`,
      `  GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON ${name}.* TO backup;`,
      '  GRANT PROCESS, RELOAD, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO backup;',
      'For the users and their rights; without it, mysqldump of MariaDB leaves the stored routines out and reports no error:',
      '  GRANT SELECT ON mysql.* TO backup;',
      'For the stored routines of MySQL:',
      '  GRANT SHOW_ROUTINE ON *.* TO backup; -- MySQL',
    ],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `file=${pathTo(directory, `${prefix}-${stamp}.sql.gz`)}`,
      ...cleanUp(directory, prefix),
      'set -o pipefail',
      `mysqldump ${connection} --single-transaction --routines --triggers --events --hex-blob --master-data=2 -- ${quoted(database)} | gzip > "$file.part"`,
      'gzip --test "$file.part"',
      '# gzip passes a dump that was cut off before it was compressed; the last line shows that it is complete.',
      `gzip --decompress --stdout "$file.part" | tail -n 5 | grep -q '^-- Dump completed'`,
      '# Users and their rights belong to the server and are in no dump of a database.',
      ...dumpGrants(connection),
      'mv "$file.grants.part" "$file.grants.sql"',
      'mv "$file.part" "$file"',
      `(cd ${quoted(directory)} && sha256sum "$(basename "$file")" > "$file.sha256")`,
      ...offsite.copy(`${prefix}-full`, '"$file.grants.sql"'),
      ...offsite.copy(`${prefix}-full`, '"$file"'),
      prune(directory, prefix, 30),
    ],
    restore: [
      '# On a new server the users first:',
      `mysql ${server} --user=root --force < FILE.grants.sql`,
      `mysql ${server} --user=root --execute=${quoted(`CREATE DATABASE IF NOT EXISTS ${name}`)}`,
      `gzip --decompress --stdout FILE | mysql ${server} --user=root ${quoted(database)}`,
    ],
    entry: entryOf(target, `${prefix}-full`, 'full', {
      source: {
        files: {
          directory,
          pattern: `^${literal(prefix)}-(?<time>\\d{8}T\\d{6}Z)\\.sql\\.gz$`,
          timeZone: 'UTC',
        },
      },
      integrity: { level: 'full' },
      ...offsite.observed(`${prefix}-full`),
    }),
  };
  return role === 'persistence'
    ? [dump, planPhysical(target, connection), planBinlog(target, server)]
    : [dump];
}

/** MariaDB’s client writes them by itself; of MySQL each account is asked. */
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

/** A copy of the files of MariaDB’s whole server, taken on its host; it has to be prepared before it is used. */
function planPhysical({ store, directory, offsite }: PlanTarget, connection: string): PlannedJob {
  const prefix = safe(`${store.name}-physical`);
  return {
    name: prefix,
    type: 'full',
    cron: '0 3,15 * * *',
    once: [
      'MariaDB alone, on the host of the server, as a user that may read its files. By mysql as root:',
      '  GRANT RELOAD, PROCESS, LOCK TABLES, REPLICATION CLIENT ON *.* TO backup;',
    ],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `folder=${pathTo(directory, `${prefix}-${stamp}`)}`,
      `trap 'rm -rf "$folder.part"' EXIT`,
      `mariabackup --backup ${connection} --target-dir="$folder.part"`,
      'mv "$folder.part" "$folder"',
      ...offsite.copy(prefix, '"$folder"', '/$(basename "$folder")'),
      prune(directory, prefix, 30),
    ],
    restore: [
      '# On a copy: what is prepared takes no further incremental backup.',
      'cp -a FOLDER PREPARED',
      'mariabackup --prepare --target-dir=PREPARED',
      '# With the server stopped and its data directory empty, as root:',
      'mariabackup --copy-back --target-dir=PREPARED --datadir=DATA_DIRECTORY',
      'chown -R mysql: DATA_DIRECTORY',
    ],
    entry: {
      name: prefix,
      store: store.name,
      type: 'full',
      source: {
        files: { directory, pattern: `^${literal(prefix)}-(?<time>\\d{8}T\\d{6}Z)$`, timeZone: 'UTC' },
      },
      integrity: { level: 'full' },
      ...offsite.observed(prefix),
    },
  };
}

function planBinlog({ store, directory, offsite }: PlanTarget, server: string): PlannedJob {
  const name = safe(`${store.name}-binlog`);
  const connection = `${server} --user=backup`;
  const binlog = `${directory}/binlog`;
  return {
    name,
    type: 'log',
    cron: '*/2 * * * *',
    script: [
      `mkdir -p ${quoted(binlog)}`,
      ...alone(directory, name),
      `cd ${quoted(binlog)}`,
      '# The newest copy is read again; without copies, the first file of the server.',
      'first=$(ls | tail -n 1)',
      `[ -n "$first" ] || first=$(mysql ${connection} --batch --skip-column-names --execute='SHOW BINARY LOGS' | head -n 1 | cut -f 1)`,
      `mysqladmin ${connection} flush-logs`,
      `mysqlbinlog ${connection} --read-from-remote-server --raw --to-last-log "$first"`,
      '# The server still writes to the last one: its copy would end the chain.',
      'rm -f "$(ls | tail -n 1)"',
      ...offsite.copy(name, quoted(binlog)),
      '# Longer than the oldest dump is kept.',
      `find ${quoted(binlog)} -type f -mtime +31 -delete`,
    ],
    restore: [
      '# After the dump, from the file and the position in its first lines (MASTER_LOG_FILE, MASTER_LOG_POS);',
      '# svc-agent recover database-corruption does both:',
      `mysqlbinlog --start-position=POSITION ${quoted(binlog)}/FILE ${quoted(binlog)}/LATER_FILES | mysql ${server} --user=root`,
    ],
    entry: {
      name,
      store: store.name,
      type: 'log',
      source: { segments: { directory: binlog, log: 'binlog' } },
      integrity: { level: 'full' },
      ...offsite.observed(name),
    },
  };
}

/** Data directories of the node, from its own configuration. */
const findData = [
  `conf=\${CASSANDRA_CONF:-/etc/cassandra}/cassandra.yaml`,
  `mapfile -t roots < <(awk '/^[^ #-]/ { on = /^data_file_directories:/ } on && !/^ *#/' "$conf" | grep -o "/[^],\\"' ]*")`,
  `[ "\${#roots[@]}" -gt 0 ] || roots=("\${CASSANDRA_HOME:-/var/lib/cassandra}/data")`,
];

/** Commands for the directory `below` of each table, in the layout of a data directory: each copy is known by its table. */
const eachTable = (database: string, copies: string, below: string, lines: readonly string[]) => [
  ...findData,
  `for root in "\${roots[@]}"; do`,
  `  for folder in "$root"/${quoted(database)}/*/${below}; do`,
  '    [ -d "$folder" ] || continue',
  `    copy=${quoted(copies)}/\${folder#"$root"/}`,
  '    mkdir -p "$copy"',
  ...lines.map((line) => `    ${line}`),
  '  done',
  'done',
];

function planSnapshots(target: PlanTarget, prefix: string, copies: string): PlannedJob {
  const { database, offsite } = target;
  const [name, keyspace] = [`${prefix}-full`, quoted(database)];
  return {
    name,
    type: 'full',
    cron: '0 2,14 * * *',
    script: [
      '# On every node; in the entry of its agent, HOSTNAME is what hostname prints there:',
      `name=${prefix}-${stamp}`,
      `nodetool snapshot --tag "$name" ${keyspace}`,
      ...eachTable(database, copies, 'snapshots/"$name"', ['cp -p "$folder"/* "$copy"']),
      `[ -n "\${copy:-}" ] || { echo "no snapshot below \${roots[*]}: set CASSANDRA_CONF" >&2; exit 1; }`,
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
      '# On every node, with the schema restored and every table empty: TRUNCATE them, because deleted rows stay deleted.',
      `for folder in ${quoted(`${copies}/${database}`)}/*/snapshots/NAME; do`,
      `  table=$(basename "\${folder%/snapshots/*}")`,
      // Without the option it would move the files out of the backup.
      `  nodetool import --copy-data ${keyspace} "\${table%-*}" "$folder"`,
      'done',
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
    cron: '*/30 * * * *',
    script: [
      '# On every node, with incremental_backups: true in cassandra.yaml. Before the flush, the newest rows are in memory only:',
      '# the start of this job is the recovery point.',
      '[ "$(nodetool statusbackup)" = running ] || { echo "the node writes no incremental backups" >&2; exit 1; }',
      `nodetool flush ${quoted(database)}`,
      ...eachTable(database, copies, 'backups', [
        'find "$folder" -maxdepth 1 -type f -exec mv -n -t "$copy" {} +',
      ]),
      ...offsite.copy(name, `--include='*/backups/*' ${quoted(copies)}`, '/$(hostname)'),
      `find ${quoted(copies)} -path '*/backups/*' -type f -mtime +8 -delete`,
    ],
    restore: [
      '# After the snapshot, for each table:',
      `nodetool import --copy-data ${quoted(database)} TABLE ${quoted(`${copies}/${database}`)}/TABLE-ID/backups`,
    ],
    entry: entryOf(target, name, 'incremental', {
      source: { incrementals: { dataDirectory: copies, keyspace: database } },
      integrity: { level: 'full' },
    }),
  };
}

function planWideColumn(target: PlanTarget): readonly PlannedJob[] {
  const prefix = safe(`${target.store.name}-${target.role}`);
  const copies = `${target.directory}/${prefix}`;
  return [planSnapshots(target, prefix, copies), planIncrementals(target, prefix, copies)];
}
