import { stringify } from 'yaml';
import { parseAddress } from '../core/address.ts';
import type { BackupType } from '../core/reasons.ts';
import type { StoreOptions } from '../probes/stores/store-options.ts';
import type { AgentConfig } from './config/types.ts';

/**
 * Backup commands ready to use: for each database of each configured store the spec's commands (Backup and restore
 * operations) to back up, verify, copy off-site, prune and restore, with the entries of `backups` that observe them.
 */

export const planFormats = ['cron', 'kubernetes'] as const;

export interface PlanOptions {
  format: (typeof planFormats)[number];
  /** Image of the jobs: the store's client programs and svc-agent. */
  image?: string;
  /** Where the backups are written. */
  directory: string;
  /** Target of `rclone copy`; without one the copies are left as comments. */
  offsite?: string;
  /** The agent's configuration file, where it is not at its usual place. */
  configFile?: string;
}

export const planDirectory = '/var/backups/svc';

interface PlannedJob {
  name: string;
  type: BackupType;
  cron: string;
  /** Shell lines, run with `set -eu`. */
  script: readonly string[];
  /** Shell lines for the day when it is needed; never run by a schedule. */
  restore: readonly string[];
  /** Entry of `backups`. */
  entry: Record<string, unknown>;
}

const stamp = '$(date -u +%Y%m%dT%H%M%SZ)';

interface PlanTarget extends Pick<PlanOptions, 'directory'> {
  /** A line that copies a file or folder off-site, to the same path below the target. */
  copy(what: string, to?: string): string;
  store: StoreOptions;
  role: string;
  database: string;
  host: string;
  port: number;
}

type Planner = (target: PlanTarget) => readonly PlannedJob[];

const planners: Readonly<Record<StoreOptions['kind'], Planner>> = {
  postgres: planPostgres,
  mysql: planMysql,
  widecolumn: planWideColumn,
};

/** A plan as files: entries for the agent's configuration, a script for each job, and what schedules them. */
export type PlanFiles = Readonly<Record<string, { text: string; isProgram?: boolean }>>;

const jobsIn = (config: AgentConfig, options: PlanOptions): readonly PlannedJob[] =>
  config.stores.length === 0
    ? []
    : [...config.stores.flatMap((store) => jobsOf(store, options)), ...configurationJob(config, options)];

const entriesOf = (jobs: readonly PlannedJob[]) => stringify({ backups: jobs.map(({ entry }) => entry) });

const notes = (offsite: string | undefined) => [
  '# Passwords are not on the command lines: use ~/.pgpass, ~/.my.cnf or the environment of the job.',
  ...(offsite === undefined ? ['# --offsite TARGET adds copies by rclone, such as backups:bucket/svc.'] : []),
];

/** Everything as one text: entries for the agent's configuration, then the jobs. */
export function printPlan(config: AgentConfig, options: PlanOptions): string {
  const jobs = jobsIn(config, options);
  if (jobs.length === 0) return '# There is no store in the configuration: nothing to back up.\n';
  const parts = jobs.map((job) =>
    options.format === 'cron' ? asCron(job, options) : asCronJob(job, options),
  );
  return [
    comment('Entries for the agent’s configuration:'),
    indented(entriesOf(jobs)),
    ...notes(options.offsite),
    '',
    ...parts,
  ].join('\n');
}

/** The same for `--out FOLDER`: cron runs the scripts where they are. */
export function planFiles(config: AgentConfig, options: PlanOptions, folder: string): PlanFiles {
  const jobs = jobsIn(config, options);
  if (options.format === 'kubernetes') {
    const manifests = jobs.map((job) => asCronJob(job, options)).join('');
    return { 'backups.yaml': { text: entriesOf(jobs) }, 'cronjobs.yaml': { text: manifests } };
  }
  const scripts = jobs.map((job) => [`${job.name}.sh`, { text: scriptOf(job), isProgram: true }] as const);
  const lines = jobs.map((job) => cronLine(job, options, `${folder}/${job.name}.sh`));
  return {
    'backups.yaml': { text: entriesOf(jobs) },
    crontab: { text: `${[...notes(options.offsite), ...lines].join('\n')}\n` },
    ...Object.fromEntries(scripts),
  };
}

const comment = (text: string) => `# ${text}`;
const indented = (text: string) => text.replace(/^(?=.)/gm, '#   ');

const copier =
  (offsite: string | undefined) =>
  (what: string, to = '') =>
    offsite === undefined
      ? comment(`rclone copy ${what} "TARGET${to}"`)
      : `rclone copy ${what} ${quoted(offsite)}${to && `"${to}"`}`;

function jobsOf(store: StoreOptions, { directory, offsite }: PlanOptions): readonly PlannedJob[] {
  const { host, port } = parseAddress(store.address) ?? { host: store.address, port: 0 };
  return Object.entries(store.databases).flatMap(([role, database]) =>
    planners[store.kind]({ store, role, database, host, port, directory, copy: copier(offsite) }),
  );
}

const quoted = (text: string): string =>
  /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

function entryOf(
  { store, role }: PlanTarget,
  name: string,
  type: BackupType,
  rest: object,
): Record<string, unknown> {
  return { name, store: store.name, database: role, type, ...rest };
}

const prune = (directory: string, prefix: string, days: number) =>
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*' -mtime +${days} -exec rm -r {} +`;

function planPostgres(target: PlanTarget): readonly PlannedJob[] {
  const { host, port, database, store, role, directory, copy } = target;
  const prefix = `${store.name}-${role}`;
  const connection = `--host=${quoted(host)} --port=${port} --username=backup`;
  const file = `${directory}/${prefix}-${stamp}.dump`;
  return [
    {
      name: `${prefix}-full`,
      type: 'full',
      cron: '0 2 * * *',
      script: [
        `mkdir -p ${quoted(directory)}`,
        `file=${file}`,
        `pg_dump --format=custom ${connection} --file="$file.part" ${quoted(database)}`,
        '# Goes through all data: the table of contents alone finds neither truncation nor corruption.',
        'pg_restore --file=/dev/null "$file.part"',
        'mv "$file.part" "$file"',
        `(cd ${directory} && sha256sum "$(basename "$file")" > "$file.sha256")`,
        copy('"$file"'),
        prune(directory, prefix, 30),
      ],
      restore: [
        `createdb ${connection} ${quoted(database)}`,
        `pg_restore ${connection} --jobs=4 --exit-on-error --dbname=${quoted(database)} FILE`,
      ],
      entry: entryOf(target, `${prefix}-full`, 'full', {
        source: { files: { directory, pattern: `^${prefix}-(?<time>\\d{8}T\\d{6}Z)\\.dump$` } },
        integrity: { level: 'full' },
      }),
    },
    ...(role === 'persistence' ? [planBaseBackup(target, connection), planWal(target)] : []),
  ];
}

/** The write-ahead log belongs to the server, so that one base backup and one archive serve all its databases. */
function planBaseBackup({ store, directory, copy }: PlanTarget, connection: string): PlannedJob {
  const prefix = `${store.name}-base`;
  return {
    name: prefix,
    type: 'full',
    cron: '0 3 * * *',
    script: [
      `mkdir -p ${quoted(directory)}`,
      `folder=${directory}/${prefix}-${stamp}`,
      `pg_basebackup ${connection} --pgdata="$folder" --wal-method=none --checkpoint=fast --manifest-checksums=SHA256`,
      '# Debian keeps it out of the path. The agent compares each file with the manifest, too.',
      'PATH=$PATH:$(echo /usr/lib/postgresql/*/bin | tr " " :)',
      'pg_verifybackup --no-parse-wal "$folder"',
      copy('"$folder"', '/$(basename "$folder")'),
      prune(directory, prefix, 30),
    ],
    restore: [
      'pg_verifybackup --no-parse-wal FOLDER',
      'cp -a FOLDER/. DATA_DIRECTORY/',
      `echo "restore_command = 'cp ${directory}/wal/%f %p'" >> DATA_DIRECTORY/postgresql.auto.conf`,
      'touch DATA_DIRECTORY/recovery.signal',
    ],
    entry: {
      name: prefix,
      store: store.name,
      type: 'full',
      source: { files: { directory, pattern: `^${prefix}-(?<time>\\d{8}T\\d{6}Z)$` } },
      integrity: { level: 'checksum' },
    },
  };
}

function planWal({ store, directory, copy }: PlanTarget): PlannedJob {
  const name = `${store.name}-wal`;
  return {
    name,
    type: 'log',
    cron: '15 * * * *',
    script: [
      `mkdir -p ${quoted(directory)}/wal`,
      `# The server archives by itself, into a folder that its user may write to: archive_mode = on, archive_timeout = 300,`,
      `# archive_command = 'test ! -f ${directory}/wal/%f && cp %p ${directory}/wal/%f.part && mv ${directory}/wal/%f.part ${directory}/wal/%f'`,
      copy(`${directory}/wal`, '/wal'),
      `find ${directory}/wal -type f -mtime +7 -delete`,
    ],
    restore: ['# The segments are read by the restore_command of the base backup.'],
    entry: {
      name,
      store: store.name,
      type: 'log',
      source: { segments: { directory: `${directory}/wal`, log: 'wal' } },
    },
  };
}

function planMysql(target: PlanTarget): readonly PlannedJob[] {
  const { host, port, database, store, role, directory, copy } = target;
  const prefix = `${store.name}-${role}`;
  const connection = `--host=${quoted(host)} --port=${port} --user=backup`;
  const dump: PlannedJob = {
    name: `${prefix}-full`,
    type: 'full',
    cron: '0 2 * * *',
    script: [
      `mkdir -p ${quoted(directory)}`,
      `file=${directory}/${prefix}-${stamp}.sql.gz`,
      'set -o pipefail',
      `mysqldump ${connection} --single-transaction --routines --triggers --events --hex-blob --master-data=2 ${quoted(database)} | gzip > "$file.part"`,
      'gzip --test "$file.part"',
      '# gzip passes a dump that was cut off before it was compressed; the last line shows that it is complete.',
      `gzip --decompress --stdout "$file.part" | tail -n 5 | grep -q '^-- Dump completed'`,
      'mv "$file.part" "$file"',
      `(cd ${directory} && sha256sum "$(basename "$file")" > "$file.sha256")`,
      copy('"$file"'),
      prune(directory, prefix, 30),
    ],
    restore: [
      `mysqladmin ${connection} create ${quoted(database)}`,
      `gzip --decompress --stdout FILE | mysql ${connection} ${quoted(database)}`,
    ],
    entry: entryOf(target, `${prefix}-full`, 'full', {
      source: { files: { directory, pattern: `^${prefix}-(?<time>\\d{8}T\\d{6}Z)\\.sql\\.gz$` } },
      integrity: { level: 'full' },
    }),
  };
  return role === 'persistence' ? [dump, planBinlog(target, connection)] : [dump];
}

function planBinlog({ store, directory, copy }: PlanTarget, connection: string): PlannedJob {
  const name = `${store.name}-binlog`;
  return {
    name,
    type: 'log',
    cron: '*/5 * * * *',
    script: [
      `mkdir -p ${directory}/binlog && cd ${directory}/binlog`,
      'first=$(ls | tail -n 1)',
      `mysqladmin ${connection} flush-logs`,
      `mysqlbinlog ${connection} --read-from-remote-server --raw --to-last-log "\${first:-FIRST_BINLOG}"`,
      copy(`${directory}/binlog`, '/binlog'),
      `find ${directory}/binlog -type f -mtime +7 -delete`,
    ],
    restore: [`mysqlbinlog ${directory}/binlog/FIRST… | mysql ${connection}`],
    entry: {
      name,
      store: store.name,
      type: 'log',
      source: { segments: { directory: `${directory}/binlog`, log: 'binlog' } },
    },
  };
}

function planWideColumn(target: PlanTarget): readonly PlannedJob[] {
  const { database, store, role, directory, copy } = target;
  const prefix = `${store.name}-${role}`;
  const data = '/var/lib/cassandra/data';
  const copies = `${directory}/${prefix}`;
  const off = (what: string) => copy(what, `/${prefix}/$(hostname)`);
  const place = { dataDirectory: copies, keyspace: database };
  /** In the layout of a data directory, so that each copy is known by its table. */
  const eachTable = (below: string, lines: readonly string[]) => [
    `for folder in ${data}/${quoted(database)}/*/${below}; do`,
    '  [ -d "$folder" ] || continue',
    `  copy=${quoted(copies)}/\${folder#${data}/}`,
    '  mkdir -p "$copy"',
    ...lines.map((line) => `  ${line}`),
    'done',
  ];
  return [
    {
      name: `${prefix}-full`,
      type: 'full',
      cron: '0 2 * * *',
      script: [
        '# On every node:',
        `name=${prefix}-${stamp}`,
        `nodetool snapshot --tag "$name" ${quoted(database)}`,
        ...eachTable('snapshots/"$name"', ['cp -p "$folder"/* "$copy"']),
        '# The copies are the backup; the snapshot would keep the disk of the node full.',
        `nodetool clearsnapshot -t "$name" ${quoted(database)}`,
        off(quoted(copies)),
        `find ${quoted(copies)} -path '*/snapshots/*' -prune -mtime +30 -exec rm -r {} +`,
      ],
      restore: [
        '# On every node, with the schema restored and the tables empty, for each table:',
        // Without the option it would move the files out of the backup.
        `nodetool import --copy-data ${quoted(database)} TABLE ${copies}/${database}/TABLE-ID/snapshots/NAME`,
      ],
      entry: entryOf(target, `${prefix}-full`, 'full', {
        source: { snapshot: place },
        integrity: { level: 'full' },
      }),
    },
    {
      name: `${prefix}-incremental`,
      type: 'incremental',
      cron: '30 * * * *',
      script: [
        '# On every node, with incremental_backups: true in cassandra.yaml. Before the flush, the newest rows are in memory only:',
        '# the start of this job is the recovery point.',
        `nodetool flush ${quoted(database)}`,
        ...eachTable('backups', ['find "$folder" -maxdepth 1 -type f -exec mv -n -t "$copy" {} +']),
        off(quoted(copies)),
        `find ${quoted(copies)} -path '*/backups/*' -type f -mtime +8 -delete`,
      ],
      restore: [
        '# After the snapshot, for each table:',
        `nodetool import --copy-data ${quoted(database)} TABLE ${copies}/${database}/TABLE-ID/backups`,
      ],
      entry: entryOf(target, `${prefix}-incremental`, 'incremental', {
        source: { incrementals: place },
        integrity: { level: 'full' },
      }),
    },
  ];
}

function configurationJob(
  { serviceConfig, backups }: AgentConfig,
  { directory, offsite }: PlanOptions,
): readonly PlannedJob[] {
  if (serviceConfig.length === 0 || backups.some(({ type }) => type === 'config')) return [];
  const copies = `${directory}/config`;
  return [
    {
      name: 'configuration',
      type: 'config',
      cron: '*/5 * * * *',
      script: [
        `folder=${copies}/${stamp}`,
        'mkdir -p "$folder"',
        `cp ${serviceConfig.map(quoted).join(' ')} "$folder"`,
        copier(offsite)('"$folder"', '/config/$(basename "$folder")'),
      ],
      restore: [`cp ${copies}/NEWEST/* DIRECTORY`],
      entry: {
        name: 'configuration',
        type: 'config',
        source: { configuration: { files: [...serviceConfig], directory: copies } },
      },
    },
  ];
}

const cronLine = ({ name, cron }: PlannedJob, { configFile }: PlanOptions, path: string): string =>
  `${cron} root svc-agent backup run --job ${name}${configFile ? ` -c ${quoted(configFile)}` : ''} -- ${quoted(path)}`;

const scriptOf = ({ script, restore }: PlannedJob): string =>
  ['#!/bin/bash', 'set -eu', ...script, comment('To restore:'), ...restore.map(comment), ''].join('\n');

function asCron(job: PlannedJob, options: PlanOptions): string {
  const path = `/etc/svc-agent/backup/${job.name}.sh`;
  return [
    comment(`---- ${job.name}`),
    comment(`/etc/cron.d/svc-backup-${job.name}:`),
    cronLine(job, options, path),
    comment(`${path}:`),
    scriptOf(job),
  ].join('\n');
}

function asCronJob(
  { name, cron, script, restore }: PlannedJob,
  { image = 'IMAGE', directory }: PlanOptions,
): string {
  const command = [
    'svc-agent',
    'backup',
    'run',
    '--job',
    name,
    '--',
    'bash',
    '-euc',
    `${script.join('\n')}\n`,
  ];
  const container = {
    name: 'backup',
    image,
    command,
    volumeMounts: [
      { name: 'backups', mountPath: directory },
      { name: 'agent', mountPath: '/etc/svc-agent', readOnly: true },
    ],
  };
  const volumes = [
    { name: 'backups', persistentVolumeClaim: { claimName: 'svc-backups' } },
    { name: 'agent', configMap: { name: 'svc-agent' } },
  ];
  const job = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: `svc-backup-${name}` },
    spec: {
      schedule: cron,
      timeZone: 'Etc/UTC',
      concurrencyPolicy: 'Forbid',
      jobTemplate: {
        spec: { template: { spec: { restartPolicy: 'Never', containers: [container], volumes } } },
      },
    },
  };
  return ['---', comment('To restore:'), ...restore.map((line) => comment(line)), stringify(job)].join('\n');
}
