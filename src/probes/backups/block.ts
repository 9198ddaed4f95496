import * as z from 'zod';
import type { Secret } from '../../core/access.ts';
import { type BackupType, backupTypes, integrityLevels } from '../../core/reasons.ts';
import { interval, parsedAs, span } from '../../core/text-formats.ts';
import type { BackupOptions, BackupSource, ObjectStoreOptions, OffsiteOptions } from './options.ts';

const wait = () => z.string(interval.fault).transform(parsedAs(interval));
const time = () => z.string(span.fault).transform(parsedAs(span));
const pattern = z.string().min(1).refine(isPattern, 'not a regular expression; use the syntax of JavaScript');

function isPattern(text: string): boolean {
  try {
    return Boolean(new RegExp(text, 'u'));
  } catch {
    return false;
  }
}

const command = z.array(z.string().min(1)).min(1);

const objectStore = (secret: z.ZodType<Secret>) =>
  z.strictObject({
    endpoint: z.string().min(1).optional(),
    region: z.string().min(1),
    bucket: z.string().min(1),
    prefix: z.string().default(''),
    accessKey: secret.optional(),
    secretKey: secret.optional(),
  }) satisfies z.ZodType<ObjectStoreOptions>;

/** One key each; the key names the kind of source. */
const sources = (secret: z.ZodType<Secret>) => ({
  files: z
    .strictObject({
      directory: z.string().min(1),
      pattern: pattern.describe(
        'Regular expression for names of files or directories; a group (?<time>…) is the start.',
      ),
      settle: wait().prefault('60s').describe('How long a file must not have changed to count as complete.'),
      sentinel: z
        .string()
        .min(1)
        .optional()
        .describe('Suffix of the file that marks a backup as complete, such as .ok.'),
    })
    .transform(
      (of): BackupSource => ({
        kind: 'files',
        directory: of.directory,
        pattern: of.pattern,
        settleMs: of.settle,
        sentinel: of.sentinel,
      }),
    ),
  segments: z
    .strictObject({
      directory: z.string().min(1),
      log: z.enum(['wal', 'binlog']),
      settle: wait().prefault('10s'),
    })
    .transform(
      (of): BackupSource => ({
        kind: 'segments',
        directory: of.directory,
        log: of.log,
        settleMs: of.settle,
      }),
    ),
  snapshot: z
    .strictObject({ dataDirectory: z.string().min(1), keyspace: z.string().regex(/^\w+$/) })
    .transform((of): BackupSource => ({ kind: 'snapshot', ...of })),
  configuration: z
    .strictObject({
      files: z.array(z.string().min(1)).min(1).describe('The live files.'),
      directory: z
        .string()
        .min(1)
        .describe('Where their copies lie: under the same names, or in one directory a copy.'),
    })
    .transform((of): BackupSource => ({ kind: 'configuration', ...of })),
  command: z
    .strictObject({
      command,
      format: z.enum(['pgbackrest', 'walg', 'barman', 'json']).default('json'),
      timeout: wait().prefault('60s'),
    })
    .transform(
      (of): BackupSource => ({
        kind: 'command',
        command: of.command,
        format: of.format,
        timeoutMs: of.timeout,
      }),
    ),
  objectStore: objectStore(secret)
    .extend({ pattern })
    .transform(({ pattern, ...of }): BackupSource => ({ kind: 'objectStore', objectStore: of, pattern })),
  heartbeat: z
    .strictObject({ token: secret })
    .transform((of): BackupSource => ({ kind: 'heartbeat', token: of.token })),
  runs: z
    .strictObject({})
    .transform((): BackupSource => ({ kind: 'runs' }))
    .describe('What svc-agent backup run --job NAME records.'),
});

const source = (secret: z.ZodType<Secret>) => {
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

const offsite = (secret: z.ZodType<Secret>) =>
  z
    .strictObject({
      objectStore: objectStore(secret).optional(),
      directory: z.string().min(1).optional(),
      maxLag: time().prefault('2h').describe('How long after its end a backup may take to get there.'),
    })
    .refine((given) => (given.objectStore === undefined) !== (given.directory === undefined), {
      when: ({ value }) => typeof value === 'object' && value !== null,
      error: 'not exactly one place; use objectStore or directory',
    })
    .transform(
      (of): OffsiteOptions => ({ objectStore: of.objectStore, directory: of.directory, maxLagMs: of.maxLag }),
    );

const hourMs = 36e5;
const dayMs = 24 * hourMs;

/**
 * The spec's schedule table (Backup and restore operations): of a range for RTO the upper end counts. The grace is
 * what is added to a backup's usual duration before it is late; the spec's alert at 25 hours has one hour of it.
 */
export const specSchedule: Readonly<
  Record<BackupType, { everyMs?: number; graceMs: number; keepMs?: number; rpoMs: number; rtoMs: number }>
> = {
  full: { everyMs: dayMs, graceMs: hourMs, keepMs: 30 * dayMs, rpoMs: dayMs, rtoMs: 4 * hourMs },
  incremental: { everyMs: hourMs, graceMs: 15 * 6e4, keepMs: 7 * dayMs, rpoMs: hourMs, rtoMs: 2 * hourMs },
  log: { everyMs: 5 * 6e4, graceMs: 5 * 6e4, keepMs: 7 * dayMs, rpoMs: 5 * 6e4, rtoMs: hourMs / 2 },
  config: { graceMs: 5 * 6e4, rpoMs: 0, rtoMs: 5 * 6e4 },
};

/** One entry of `backups` (CONTRACT, Configuration); what is left out comes from the spec's schedule table. */
export const backupBlock = ({ secret }: { secret: z.ZodType<Secret> }) =>
  z
    .strictObject({
      name: z.string().regex(/^[\w.-]+$/, 'not a name; use letters, digits, -, _ and .'),
      store: z.string().min(1).optional().describe('Name of an entry of stores; not for type config.'),
      database: z
        .enum(['persistence', 'visibility'])
        .optional()
        .describe('Left out, the backup is of all databases of the store.'),
      type: z.enum(backupTypes),
      source: source(secret),
      schedule: z
        .strictObject({ every: time().optional(), grace: time().optional() })
        .default({})
        .describe('How often a success is due, and how late it may be.'),
      objectives: z
        .strictObject({ rpo: time().optional(), rto: time().optional() })
        .default({})
        .describe('Recovery point and recovery time objective.'),
      retention: z
        .strictObject({ keep: time().optional(), minCount: z.int().min(0).default(1) })
        .prefault({})
        .describe('How long backups are kept, and how many at least.'),
      integrity: z
        .strictObject({
          level: z.enum(integrityLevels).default('header'),
          minBytes: z.int().min(0).default(1),
          maxShrink: z
            .number()
            .min(0)
            .max(1)
            .default(0.5)
            .describe('Share by which a backup may be smaller than the last.'),
          bytesPerSecond: z
            .int()
            .min(1024)
            .default(50 * 1024 * 1024)
            .describe('How fast backups are read to verify them.'),
        })
        .prefault({}),
      offsite: offsite(secret).optional(),
      interval: wait().prefault('60s').describe('How often the evidence is read.'),
    })
    .transform(({ schedule, retention, objectives, interval, ...rest }): BackupOptions => {
      const usual = specSchedule[rest.type];
      return {
        ...rest,
        intervalMs: interval,
        schedule: {
          everyMs: schedule.every ?? usual.everyMs,
          graceMs: schedule.grace,
          usualGraceMs: usual.graceMs,
        },
        objectives: { rpoMs: objectives.rpo ?? usual.rpoMs, rtoMs: objectives.rto ?? usual.rtoMs },
        retention: { keepMs: retention.keep ?? usual.keepMs, minCount: retention.minCount },
      };
    });
