import * as z from 'zod';
import type { Secret } from '../../core/access.ts';
import { interval, parsedAs, placeholders, span } from '../../core/text-formats.ts';
import type { LogKind } from './formats/segments.ts';
import { isTimeZone } from './formats/wall-time.ts';

/** The object store of a backup. If no keys are configured, the credentials come from the environment. */
export interface ObjectStoreOptions {
  endpoint?: string;
  region: string;
  bucket: string;
  prefix: string;
  accessKey?: Secret;
  secretKey?: Secret;
}

/** Tools that manage backups by themselves; `json` is the agent’s own form of report. */
const reportFormats = ['pgbackrest', 'walg', 'barman', 'json'] as const;
export type ReportFormat = (typeof reportFormats)[number];

/** The servers of a store from which a backup may be taken. */
const takenFromServers = ['primary', 'replica'] as const;
type TakenFrom = (typeof takenFromServers)[number];

/** Where the evidence of a backup is found; exactly one of these. */
export type BackupSource =
  | {
      kind: 'files';
      directory: string;
      pattern: string;
      settleMs: number;
      sentinel?: string;
      timeZone?: string;
      takenFrom?: TakenFrom;
    }
  | { kind: 'segments'; directory: string; log: LogKind; settleMs: number }
  | { kind: 'snapshot'; dataDirectory: string; keyspace: string; settleMs?: number }
  | { kind: 'incrementals'; dataDirectory: string; keyspace: string }
  | { kind: 'configuration'; files: readonly string[]; directory: string }
  | {
      kind: 'command';
      command: readonly string[];
      format: ReportFormat;
      verify?: readonly string[];
      restore?: readonly string[];
      timeoutMs: number;
    }
  | { kind: 'objectStore'; objectStore: ObjectStoreOptions; pattern: string }
  | { kind: 'heartbeat'; token: Secret }
  | { kind: 'runs' };

export const wait = () => z.string(interval.fault).transform(parsedAs(interval));
export const time = () => z.string(span.fault).transform(parsedAs(span));
const pattern = z.string().min(1).refine(isPattern, 'not a regular expression; use the syntax of JavaScript');

function isPattern(text: string): boolean {
  try {
    return Boolean(new RegExp(text, 'u'));
  } catch {
    return false;
  }
}

const command = z.array(z.string().min(1)).min(1);
const verifyPlaces = placeholders(['id']);
const restorePlaces = placeholders(['id', 'directory']);

export const objectStore = (secret: z.ZodType<Secret>) =>
  z.strictObject({
    endpoint: z
      .string()
      .min(1)
      .optional()
      .describe('URL of the object store. Default: the URL of the region.'),
    region: z.string().min(1).describe('Region that requests are signed for.'),
    bucket: z.string().min(1).describe('Name of the bucket.'),
    prefix: z.string().default('').describe('Prefix of the keys to include.'),
    accessKey: secret.optional(),
    secretKey: secret.optional(),
  }) satisfies z.ZodType<ObjectStoreOptions>;

const filesSource = z
  .strictObject({
    directory: z.string().min(1).describe('Directory that holds the backups.'),
    pattern: pattern.describe(
      'Regular expression for names of files or directories; the group (?<time>…) is a time for schedules, in UTC.',
    ),
    settle: wait().prefault('60s').describe('How long a file must not have changed to count as complete.'),
    sentinel: z
      .string()
      .min(1)
      .optional()
      .describe('Suffix of the file that marks a backup as complete, such as .ok.'),
    timeZone: z
      .string()
      .refine(isTimeZone, 'not a time zone; use a name such as UTC or Europe/Berlin')
      .optional()
      .describe(
        'Time zone of the host that makes the backups: a dump states a local time. Without it the time counts as the earliest one that it can be in any zone.',
      ),
    takenFrom: z
      .enum(takenFromServers)
      .optional()
      .describe(
        'Server that the backups are taken from. primary: each backup is taken from the primary, and none by pg_dump --snapshot. A dump, and a copy by mariadb-backup or xtrabackup, does not state its server. Without this key their recovery point is unknown, as with replica, whose lag no backup states.',
      ),
  })
  .transform(
    (of): BackupSource => ({
      kind: 'files',
      directory: of.directory,
      pattern: of.pattern,
      settleMs: of.settle,
      sentinel: of.sentinel,
      timeZone: of.timeZone,
      takenFrom: of.takenFrom,
    }),
  )
  .describe('Files or directories of backups.');

const segmentsSource = z
  .strictObject({
    directory: z.string().min(1).describe('Directory that the segments are archived to.'),
    log: z
      .enum(['wal', 'binlog'])
      .describe('Write-ahead log of PostgreSQL, or binary log of MySQL and MariaDB.'),
    settle: wait().prefault('10s').describe('How long a segment must not have changed to count as complete.'),
  })
  .transform(
    (of): BackupSource => ({
      kind: 'segments',
      directory: of.directory,
      log: of.log,
      settleMs: of.settle,
    }),
  )
  .describe('Archived log segments.');

const snapshotSource = z
  .strictObject({
    dataDirectory: z.string().min(1).describe('Data directory of the node, with a directory per keyspace.'),
    keyspace: z.string().regex(/^\w+$/).describe('Keyspace that the snapshots must cover.'),
    settle: wait()
      .prefault('10s')
      .describe(
        'How long a snapshot that lacks something must not have changed to count as incomplete: it may be under way, or be cleared.',
      ),
  })
  .transform(({ settle, ...of }): BackupSource => ({ kind: 'snapshot', ...of, settleMs: settle }))
  .describe('Snapshots of a wide-column node.');

const incrementalsSource = z
  .strictObject({
    dataDirectory: z
      .string()
      .min(1)
      .describe('Data directory of the node, or of the copies, with a directory per keyspace.'),
    keyspace: z.string().regex(/^\w+$/).describe('Keyspace that is flushed.'),
  })
  .transform((of): BackupSource => ({ kind: 'incrementals', ...of }))
  .describe('Incremental backups of a wide-column node, as of the recorded runs of nodetool flush.');

const configurationSource = z
  .strictObject({
    files: z.array(z.string().min(1)).min(1).describe('The live files.'),
    directory: z
      .string()
      .min(1)
      .describe('Directory of the copies: under the same names, or in one subdirectory per copy.'),
  })
  .transform((of): BackupSource => ({ kind: 'configuration', ...of }))
  .describe('Copies of configuration files.');

const commandSource = z
  .strictObject({
    command: command.describe('Program and arguments that print the report, without a shell.'),
    format: z
      .enum(reportFormats)
      .default('json')
      .describe('Tool that prints the report; json is the agent’s own format.'),
    verify: z
      .array(z.string().min(1).refine(verifyPlaces.holds, verifyPlaces.fault))
      .min(1)
      .optional()
      .describe('Program and arguments that verify one backup; {id} is the name that the tool gave to it.'),
    restore: z
      .array(z.string().min(1).refine(restorePlaces.holds, restorePlaces.fault))
      .min(1)
      .optional()
      .describe(
        'Program and arguments that restore the backup {id} of PostgreSQL into the empty directory {directory}, with restore_command in postgresql.auto.conf there; for recovery.rehearsal.',
      ),
    timeout: wait().prefault('60s').describe('How long the command may take.'),
  })
  .transform(
    (of): BackupSource => ({
      kind: 'command',
      command: of.command,
      format: of.format,
      verify: of.verify,
      restore: of.restore,
      timeoutMs: of.timeout,
    }),
  )
  .describe('Report of a backup tool.');

const objectStoreSource = (secret: z.ZodType<Secret>) =>
  objectStore(secret)
    .extend({
      pattern: pattern.describe(
        'Regular expression for keys; the group (?<time>…) is the start of the backup.',
      ),
    })
    .transform(({ pattern, ...of }): BackupSource => ({ kind: 'objectStore', objectStore: of, pattern }))
    .describe('Backups in an S3-compatible bucket.');

const heartbeatSource = (secret: z.ZodType<Secret>) =>
  z
    .strictObject({ token: secret.describe('Bearer token of POST /backup/NAME/start, /success and /fail.') })
    .transform((of): BackupSource => ({ kind: 'heartbeat', token: of.token }))
    .describe('Requests that the backup job sends to the admin listener.');

const runsSource = z
  .strictObject({})
  .transform((): BackupSource => ({ kind: 'runs' }))
  .describe('Records of svc-agent backup run --job NAME.');

/** The schema of a source: a map with exactly one of these keys, which names the kind of source. */
const sources = (secret: z.ZodType<Secret>) => ({
  files: filesSource,
  segments: segmentsSource,
  snapshot: snapshotSource,
  incrementals: incrementalsSource,
  configuration: configurationSource,
  command: commandSource,
  objectStore: objectStoreSource(secret),
  heartbeat: heartbeatSource(secret),
  runs: runsSource,
});

export const source = (secret: z.ZodType<Secret>) => {
  const shapes = sources(secret);
  const kinds = Object.keys(shapes) as (keyof typeof shapes)[];
  const optional = Object.fromEntries(kinds.map((kind) => [kind, shapes[kind].optional()])) as {
    [K in keyof typeof shapes]: z.ZodOptional<(typeof shapes)[K]>;
  };
  return z
    .strictObject(optional)
    .refine((given) => kinds.filter((kind) => given?.[kind] !== undefined).length === 1, {
      when: ({ value }) => typeof value === 'object' && value !== null,
      error: `not exactly one source; use one of ${kinds.join(', ')}`,
    })
    .transform(
      (given) => kinds.map((kind) => given[kind]).find((found) => found !== undefined) as BackupSource,
    );
};
