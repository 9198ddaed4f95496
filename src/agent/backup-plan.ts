import { resolve } from 'node:path';
import { stringify } from 'yaml';
import { parseAddress } from '../core/address.ts';
import { usageError } from '../core/errors.ts';
import type { StoreOptions } from '../probes/stores/store-options.ts';
import { type PlannedJob, type PlanTarget, stamp } from './backup-jobs/job.ts';
import { planMysql } from './backup-jobs/mysql.ts';
import { planPostgres } from './backup-jobs/postgres.ts';
import { planWideColumn } from './backup-jobs/wide-column.ts';
import { type OffsiteTarget, offsiteOf, quoted } from './backup-offsite.ts';
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
  /** The directory in which the backups are written. */
  directory: string;
  /** The destination of the copies; without it the lines that copy are comments. */
  offsite?: OffsiteTarget;
  /** The agent's configuration file. */
  configFile?: string;
}

export const planDirectory = '/var/backups/svc';

/** A plan as files: entries for the agent's configuration, a script for each job, and what schedules them. */
export type PlanFiles = Readonly<Record<string, { text: string; isProgram?: boolean }>>;

/** The jobs of a plan. Throws `usage` for a name or a path that no shell line and no crontab can contain. */
function jobsIn(config: AgentConfig, options: PlanOptions): readonly PlannedJob[] {
  if (config.stores.length === 0) return [];
  const { directory, offsite, configFile } = options;
  const places = { '--directory': directory, '--offsite': offsite?.target, '--config': configFile };
  for (const [name, text] of Object.entries(places)) refuseControl(name, text);
  for (const file of [...config.serviceConfig, config.dynamicConfig]) refuseControl('serviceConfig', file);
  for (const { name, databases } of config.stores)
    for (const text of [name, ...Object.values(databases)]) refuseControl('stores', text);
  return [...config.stores.flatMap((store) => jobsOf(store, options)), ...configurationJob(config, options)];
}

function refuseControl(where: string, text: string | undefined): void {
  if (text === undefined || !/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(text)) return;
  const what = 'a name with a control character, which would break a line of a script';
  throw usageError(where, what, JSON.stringify(text), 'rename it');
}

/** The entries as YAML without aliases: an operator copies single entries. */
const entriesOf = (jobs: readonly PlannedJob[]) =>
  stringify({ backups: jobs.map(({ entry }) => entry) }, { aliasDuplicateObjects: false });

/** Debian's cron looks only in /usr/bin and /bin. */
const cronPath = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const notes = (offsite: OffsiteTarget | undefined) => [
  '# Passwords are not on the command lines: use ~/.pgpass, ~/.my.cnf or the environment of the job.',
  ...offsiteOf(offsite).notes.map(comment),
];

/** The jobs as data, for `--json`. */
export const planJson = (config: AgentConfig, options: PlanOptions) => ({
  jobs: jobsIn(config, options).map((job) => ({ ...job, script: scriptOf(job) })),
});

/** The whole plan as one text: entries for the agent's configuration, then the jobs. */
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

/** The plan as files for `--out FOLDER`: cron runs the scripts in that folder. */
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
    crontab: { text: `${[...notes(options.offsite), cronPath, ...lines].join('\n')}\n` },
    ...Object.fromEntries(scripts),
  };
}

const comment = (text: string) => `# ${text}`;
const indented = (text: string) => text.replace(/^(?=.)/gm, '#   ');

const planners: Readonly<Record<StoreOptions['kind'], (target: PlanTarget) => readonly PlannedJob[]>> = {
  postgres: planPostgres,
  mysql: planMysql,
  widecolumn: planWideColumn,
};

function jobsOf(store: StoreOptions, { directory, offsite }: PlanOptions): readonly PlannedJob[] {
  const { host, port } = parseAddress(store.address) ?? { host: store.address, port: 0 };
  return Object.entries(store.databases).flatMap(([role, database]) =>
    planners[store.kind]({ store, role, database, host, port, directory, offsite: offsiteOf(offsite) }),
  );
}

function configurationJob(
  { serviceConfig, dynamicConfig, backups }: AgentConfig,
  { directory, offsite }: PlanOptions,
): readonly PlannedJob[] {
  const files = [
    ...new Set([...serviceConfig, ...(dynamicConfig ? [dynamicConfig] : [])].map((path) => resolve(path))),
  ];
  const words = files.map(quoted).join(' ');
  if (serviceConfig.length === 0 || backups.some(({ type }) => type === 'config')) return [];
  const copies = `${directory}/config`;
  const { copy, observed } = offsiteOf(offsite);
  return [
    {
      name: 'configuration',
      type: 'config',
      cron: '*/5 * * * *',
      script: [
        `mkdir -p ${quoted(copies)} && cd ${quoted(copies)}`,
        '# Makes a copy for each change.',
        'newest=$(ls | tail -n 1)',
        'same=yes',
        `for file in ${words}; do`,
        '  cmp --silent "$file" "./$newest/$(basename "$file")" || same=no',
        'done',
        '[ $same = no ] || exit 0',
        `folder=${stamp}`,
        'mkdir "$folder"',
        `cp -p ${words} "$folder"`,
        ...copy('configuration', `${quoted(`${copies}/`)}"$folder"`, '/$folder'),
      ],
      restore: [`cp ${quoted(copies)}/NEWEST/* DIRECTORY`],
      entry: {
        name: 'configuration',
        type: 'config',
        source: { configuration: { files, directory: copies } },
        ...observed('configuration'),
      },
    },
  ];
}

/** A percent sign ends the command in a line of a crontab, so it is escaped. */
const inCrontab = (text: string) => text.replaceAll('%', '\\%');

const cronLine = ({ name, cron }: PlannedJob, { configFile }: PlanOptions, path: string): string =>
  `${cron} root svc-agent backup run --job ${name}${configFile ? ` -c ${inCrontab(quoted(configFile))}` : ''} -- ${inCrontab(quoted(path))}`;

/**
 * The first lines of a script: other users may not read the rows of a dump, and local times in a dump are UTC, as the entry says.
 */
const preamble = ['umask 027', 'export TZ=UTC'];

const scriptOf = (job: PlannedJob): string =>
  ['#!/bin/bash', ...onceOf(job), 'set -eu', ...preamble, ...job.script, ...restoreOf(job), ''].join('\n');

const onceOf = ({ once = [] }: PlannedJob) =>
  once.length === 0 ? [] : [comment('Once:'), ...once.map((line) => comment(`  ${line}`))];
const restoreOf = ({ restore }: PlannedJob) => [comment('To restore:'), ...restore.map(comment)];

function asCron(job: PlannedJob, options: PlanOptions): string {
  const path = `/etc/svc-agent/backup/${job.name}.sh`;
  return [
    comment(`---- ${job.name}`),
    comment(`/etc/cron.d/svc-backup-${job.name}:`),
    cronPath,
    cronLine(job, options, path),
    comment(`${path}:`),
    scriptOf(job),
  ].join('\n');
}

function asCronJob(job: PlannedJob, { image = 'IMAGE', directory }: PlanOptions): string {
  const { name, cron, script } = job;
  const command = [
    'svc-agent',
    'backup',
    'run',
    '--job',
    name,
    '--',
    'bash',
    '-euc',
    `${[...preamble, ...script].join('\n')}\n`,
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
  const manifest = {
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
  return ['---', ...onceOf(job), ...restoreOf(job), stringify(manifest)].join('\n');
}
