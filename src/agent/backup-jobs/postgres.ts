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

/** A path in a command of PostgreSQL, in which a percent sign would begin a placeholder. */
const inCommand = (path: string) => quoted(path).replaceAll('%', '%%');

/** A text between the single quotes of a setting of PostgreSQL. */
const inSetting = (text: string) => text.replaceAll("'", "''");

/** The jobs for a store. A server archives its log and makes its base backups once for all its databases. */
export function planPostgres(target: PlanTarget): readonly PlannedJob[] {
  const server = `--host=${quoted(target.host)} --port=${target.port}`;
  const connection = `${server} --username=backup`;
  const dump = planDump(target, server, connection);
  return target.role === 'persistence' ? [dump, planBaseBackup(target, connection), planWal(target)] : [dump];
}

function planDump(target: PlanTarget, server: string, connection: string): PlannedJob {
  const { database, store, role, directory, offsite } = target;
  const prefix = safe(`${store.name}-${role}`);
  const file = pathTo(directory, `${prefix}-${stamp}.dump`);
  const job = { name: `${prefix}-full`, type: 'full' } as const;
  return {
    ...job,
    cron: '0 2,14 * * *',
    once: [
      'With psql, as a superuser (PostgreSQL 14 and later):',
      `  CREATE ROLE backup LOGIN REPLICATION PASSWORD '<password>';`,
      '  GRANT pg_read_all_data TO backup;',
    ],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `file=${file}`,
      ...cleanUp(directory, prefix),
      '# A replica lacks what it has not received yet, and a dump does not state how much that is: connect to the primary only.',
      'export PGTARGETSESSIONATTRS=primary',
      `pg_dump --format=custom ${connection} --file="$file.part" --dbname=${quoted(database)}`,
      '# Reads all data: the table of contents alone finds neither truncation nor corruption.',
      'pg_restore --file=/dev/null "$file.part"',
      '# Roles and their rights belong to the server and are in no dump; only a superuser can read passwords.',
      `pg_dumpall ${connection} --globals-only --no-role-passwords --file="$file.globals.part"`,
      'mv "$file.globals.part" "$file.globals.sql"',
      'mv "$file.part" "$file"',
      `(cd ${quoted(directory)} && sha256sum "$(basename "$file")" > "$file.sha256")`,
      ...offsite.copy(job.name, '"$file.globals.sql"'),
      ...offsite.copy(job.name, '"$file"'),
      prune(directory, prefix, 30),
    ],
    restore: [
      '# On a new server, restore the roles first, and set their passwords by hand (existing roles are reported, and stay):',
      `psql ${server} --username=postgres --dbname=postgres --file=FILE.globals.sql`,
      `createdb ${server} --username=postgres ${quoted(database)} || true`,
      `pg_restore ${server} --username=postgres --dbname=${quoted(database)} --jobs=4 --clean --if-exists --exit-on-error FILE`,
    ],
    entry: {
      ...entryOf(target, job, { files: { ...timedFiles(directory, prefix, '.dump'), ...ofPrimary } }),
      ...offsite.observed(job.name),
    },
  };
}

const debianPath = 'PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr " " :)';

/**
 * The plan for base backups and the archive. The write-ahead log belongs to the server, so one base backup and one archive serve
 * all its databases.
 */
function planBaseBackup({ store, directory, offsite }: PlanTarget, connection: string): PlannedJob {
  const prefix = safe(`${store.name}-base`);
  const job = { name: prefix, type: 'full' } as const;
  return {
    ...job,
    cron: '0 3,15 * * *',
    once: ['The user backup needs a line of the type replication in pg_hba.conf.'],
    script: [
      `mkdir -p ${quoted(directory)}`,
      `folder=${pathTo(directory, `${prefix}-${stamp}`)}`,
      `pg_basebackup ${connection} --pgdata="$folder" --wal-method=none --checkpoint=fast --manifest-checksums=SHA256`,
      ...readableForGroup(directory, '"$folder"'),
      '# Debian does not put pg_verifybackup on the path. The agent compares each file with the manifest, too.',
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
      'chmod -R u=rwX,go= DATA_DIRECTORY',
    ],
    entry: {
      ...entryOf({ store }, job, { files: timedFiles(directory, prefix) }, 'checksum'),
      ...offsite.observed(prefix),
    },
  };
}

function planWal({ store, directory, offsite }: PlanTarget): PlannedJob {
  const name = safe(`${store.name}-wal`);
  const wal = `${directory}/wal`;
  const place = inCommand(wal);
  const archive = `test ! -f ${place}/%f && cp %p ${place}/%f.part && chmod 640 ${place}/%f.part && mv ${place}/%f.part ${place}/%f`;
  const job = { name, type: 'log' } as const;
  return {
    ...job,
    // Together with the archive_timeout, this is within the recovery point objective of 5 minutes.
    cron: '*/2 * * * *',
    once: [
      'The server archives by itself. As root on its host:',
      `  mkdir -p ${quoted(wal)} && chown postgres ${quoted(directory)} ${quoted(wal)}`,
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
      ...entryOf({ store }, job, { segments: { directory: wal, log: 'wal' } }),
      ...offsite.observed(name),
    },
  };
}
