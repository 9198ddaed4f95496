import { spawn } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { errorText, nearest, systemCode, usageError } from '../../core/errors.ts';
import { makeDirectorySync } from '../../core/make-directory.ts';
import type { BackupOptions } from '../../probes/backups/block.ts';
import { partsOfSnapshots } from '../../probes/backups/cassandra-backups.ts';
import { newSstables } from '../../probes/backups/cassandra-incrementals.ts';
import { journalPath, type RunRecord, readRuns, recordRun } from '../../probes/backups/journal.ts';
import { checkOffsite } from '../backup-offsite.ts';
import {
  type PlanFiles,
  type PlanOptions,
  planDirectory,
  planFiles,
  planFormats,
  planJson,
  printPlan,
} from '../backup-plan.ts';
import { onSignals } from '../signals.ts';
import {
  type ConfigurationValues,
  command,
  configurationOptions,
  configured,
  type ValuesOf,
} from './arguments.ts';
import type { Command, Io } from './io.ts';

const usage = `Usage: svc-agent backup run --job NAME [--artifact FILE] [-c FILE] -- COMMAND...
       svc-agent backup plan [--format cron|kubernetes] [--image IMAGE] [--directory DIR]
                             [--offsite TARGET [--region REGION] [--endpoint URL]] [--out FOLDER | --json] [-c FILE]

run: runs COMMAND, passes its output and its exit status through, and records start, end, size and result for the
entry NAME of backups. --artifact is the file whose size is recorded.
plan: prints, for each configured store, the commands that back up, verify, copy off-site, prune and restore it.
  --directory DIR   where the backups are written (${planDirectory})
  --offsite TARGET  copies them with rclone, to a directory or to a remote such as backups:bucket/svc
  --region REGION   the remote is an S3-compatible bucket, which the agent observes; rclone needs no configuration
  --endpoint URL    URL of an object store that is not Amazon S3
  --out FOLDER      writes files instead: backups.yaml for the agent's configuration, a script for each job, crontab
A fault in the configuration is printed, but the backup runs all the same; such a run is not recorded.
Exit status of run: the exit status of COMMAND; 127 COMMAND cannot be started; 2 wrong usage.
`;

const options = {
  ...configurationOptions,
  job: { type: 'string' },
  artifact: { type: 'string' },
  format: { type: 'string' },
  image: { type: 'string' },
  directory: { type: 'string' },
  offsite: { type: 'string' },
  region: { type: 'string' },
  endpoint: { type: 'string' },
  out: { type: 'string' },
} as const;
type Values = ValuesOf<typeof options>;

/** Runs `svc-agent backup run` and `svc-agent backup plan`. */
export const backup: Command = (args, io) => {
  const at = args.indexOf('--');
  const own = at < 0 ? args : args.slice(0, at);
  const job = at < 0 ? [] : args.slice(at + 1);
  const form = { name: 'backup', usage, options, most: 1 } as const;
  // Otherwise the options of COMMAND would be taken for unknown options of this command.
  if (own[0] === 'run' && at < 0 && !own.some((word) => word === '--help' || word === '-h'))
    throw noCommand();
  return command(form, async (values, _, [action]) => {
    if (action === 'plan') return plan(values, io);
    if (action === 'run') return run(job, values, io);
    throw wrongUsage('unknown action', action, 'use run or plan');
  })(own, io);
};

const noCommand = () =>
  wrongUsage('no command', undefined, 'put it behind --, such as backup run --job NAME -- pg_dump …');

async function plan(values: Values, io: Io): Promise<number> {
  const format = planFormats.find((known) => known === (values.format ?? 'cron'));
  if (format === undefined)
    throw wrongUsage('unknown --format', values.format, `use ${planFormats.join(' or ')}`);
  const { offsite: target, region, endpoint } = values;
  checkOffsite({ target, region, endpoint });
  const { config, files } = await configured(values, io);
  const planned: PlanOptions = {
    format,
    image: values.image,
    directory: resolve(io.cwd, values.directory ?? planDirectory),
    offsite: target === undefined ? undefined : { target, region, endpoint },
    configFile: files[0] && resolve(io.cwd, files[0]),
  };
  if (values.json) io.stdout(`${JSON.stringify(planJson(config, planned), null, 2)}\n`);
  else if (values.out === undefined) io.stdout(printPlan(config, planned));
  else writePlan(planFiles(config, planned, resolve(io.cwd, values.out)), resolve(io.cwd, values.out), io);
  return 0;
}

async function run(words: readonly string[], values: Values, io: Io): Promise<number> {
  if (values.job === undefined) throw wrongUsage('--job is missing', undefined, 'name an entry of backups');
  if (!words[0]) throw noCommand();
  if (!/^[\w.-]+$/.test(values.job))
    throw wrongUsage('no such backup', values.job, 'name an entry of backups');
  const job = await recordedJob(values.job, values, io);
  return runRecorded(words, { ...job, artifact: values.artifact }, io);
}

/** Where runs of a job are recorded, and the entry of `backups` that uses this record as evidence. */
interface RecordedJob {
  journal?: string;
  entry?: BackupOptions;
}

/**
 * Where runs of a job are recorded. If this is not known, prints the reason: no fault of a configuration prevents a backup from
 * running.
 */
async function recordedJob(job: string, values: ConfigurationValues, io: Io): Promise<RecordedJob> {
  try {
    const { config } = await configured(values, io);
    const names = config.backups.map(({ name }) => name);
    const entry = config.backups.find(({ name }) => name === job);
    if (entry) return { journal: journalPath(config.stateDirectory, 'backup', job), entry };
    const near = nearest(job, names);
    const known = names.length === 0 ? 'the configuration has none' : `there is ${names.join(', ')}`;
    throw wrongUsage('no such backup', job, `${near ? `did you mean ${near}? ` : ''}${known}`);
  } catch (thrown) {
    io.stderr(`${errorText(thrown)}\nsvc-agent: the command runs all the same; this run is not recorded\n`);
    return {};
  }
}

function writePlan(files: PlanFiles, folder: string, io: Io): void {
  makeDirectorySync(mkdirSync, folder, 0o777);
  for (const [name, { text, isProgram }] of Object.entries(files)) {
    writeFileSync(join(folder, name), text, { mode: isProgram ? 0o755 : 0o644 });
    io.stdout(`${join(folder, name)}\n`);
  }
}

const wrongUsage = (what: string, got?: string, allowed = 'see svc-agent backup --help') =>
  usageError('svc-agent backup', what, got, allowed);

/** Runs a backup and records its result. A failure to record is printed; it does not prevent or fail the backup. */
async function runRecorded(
  command: readonly string[],
  { journal, entry, artifact }: RecordedJob & { artifact?: string },
  io: Io,
): Promise<number> {
  const record = async (run: RunRecord) => {
    if (journal === undefined) return;
    await recordRun(journal, run).catch((thrown: unknown) =>
      io.stderr(`svc-agent: this run cannot be recorded in ${journal}: ${errorText(thrown)}\n`),
    );
  };
  const startMs = Date.now();
  // The wall clock may be set meanwhile.
  const began = performance.now();
  await record({ startMs });
  const { status, msg } = await runToEnd(command, environmentOf(entry));
  if (msg !== undefined) io.stderr(`svc-agent: ${msg}\n`);
  const endMs = startMs + Math.round(performance.now() - began);
  const sizeBytes = status === 0 ? sizeOf(artifact) : undefined;
  const files =
    status === 0 && journal !== undefined && entry ? await filesOf(entry, journal, io) : undefined;
  await record({ startMs, endMs, status, msg, sizeBytes, files });
  return status;
}

/**
 * The environment of the command. Its variable makes PostgreSQL's programs refuse to connect to a replica, as the entry requires.
 * A value that is already set stays.
 */
function environmentOf(entry: BackupOptions | undefined): NodeJS.ProcessEnv {
  const isOfPrimary = entry?.source.kind === 'files' && entry.source.takenFrom === 'primary';
  return { ...(isOfPrimary && { PGTARGETSESSIONATTRS: 'primary' }), ...process.env };
}

/**
 * The files that a job for the wide-column store has left, so that a part that is missing later is noticed. Undefined for other
 * jobs, and if they cannot be read, which is printed.
 */
async function filesOf({ source }: BackupOptions, journal: string, io: Io): Promise<RunRecord['files']> {
  try {
    if (source.kind === 'snapshot')
      return await partsOfSnapshots(join(source.dataDirectory, source.keyspace));
    if (source.kind === 'incrementals') return await newSstables(source, await readRuns(journal));
  } catch (thrown) {
    io.stderr(`svc-agent: the files of this run cannot be recorded: ${errorText(thrown)}\n`);
  }
  return undefined;
}

function sizeOf(artifact: string | undefined): number | undefined {
  if (artifact === undefined) return undefined;
  return statSync(artifact, { throwIfNoEntry: false })?.size ?? 0;
}

/** Passes SIGTERM, SIGINT and SIGHUP on to the command, so that it can clean up. */
function runToEnd(
  [program = '', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<{ status: number; msg?: string }> {
  return new Promise((resolve) => {
    // Signals are handled before the command starts: a signal in between would end this process and leave the command running.
    const undo = onSignals({ stop: () => child.kill('SIGTERM'), reload: () => child.kill('SIGHUP') });
    const child = spawn(program, args, { stdio: 'inherit', env });
    child.once('error', (thrown) => {
      undo();
      const code = systemCode(thrown);
      resolve({
        status: code === 'EACCES' ? 126 : 127,
        msg: `${program} cannot be started: ${code ?? errorText(thrown)}`,
      });
    });
    child.once('close', (status, signal) => {
      undo();
      if (signal === null) return resolve({ status: status ?? 1 });
      resolve({ status: 128 + constants.signals[signal], msg: `${program} was ended by ${signal}` });
    });
  });
}
