import * as z from 'zod';
import type { Secret } from '../../core/access.ts';
import { interval, parsedAs, span } from '../../core/text-formats.ts';
import { type BackupOptions, type BackupSource, backupTypes, type ObjectStoreOptions } from './options.ts';

const hourMs = 36e5;
const dayMs = 24 * hourMs;

/** The spec's schedule table; the grace of a full backup is what its alert at 25 hours allows. */
const specSchedule = {
  full: { everyMs: dayMs, graceMs: hourMs, keepMs: 30 * dayMs },
  incremental: { everyMs: hourMs, graceMs: hourMs, keepMs: 7 * dayMs },
  log: { everyMs: 3e5, graceMs: 3e5, keepMs: 7 * dayMs },
  config: { everyMs: undefined, graceMs: 0, keepMs: undefined },
} as const;

const wait = () => z.string(interval.fault).transform(parsedAs(interval));
const time = () => z.string(span.fault).transform(parsedAs(span));
const pattern = z.string().min(1).refine(isPattern, 'not a regular expression; use JavaScript’s syntax');

function isPattern(text: string): boolean {
  try {
    return Boolean(new RegExp(text, 'u'));
  } catch {
    return false;
  }
}

const objectStore = (secret: z.ZodType<Secret>) =>
  z.strictObject({
    endpoint: z.string().min(1).optional(),
    region: z.string().min(1),
    bucket: z.string().min(1),
    prefix: z.string().default(''),
    accessKey: secret.optional(),
    secretKey: secret.optional(),
  }) satisfies z.ZodType<ObjectStoreOptions>;

const kinds = ['files', 'command', 'heartbeat', 'objectStore'] as const;

const source = (secret: z.ZodType<Secret>) =>
  z
    .strictObject({
      files: z
        .strictObject({ directory: z.string().min(1), pattern, settle: wait().prefault('60s') })
        .transform(
          (of): BackupSource => ({
            kind: 'files',
            directory: of.directory,
            pattern: of.pattern,
            settleMs: of.settle,
          }),
        )
        .optional(),
      command: z
        .strictObject({
          command: z.array(z.string()).min(1),
          format: z.enum(['pgbackrest', 'json']).default('json'),
          timeout: wait().prefault('60s'),
        })
        .transform(
          (of): BackupSource => ({
            kind: 'command',
            command: of.command,
            format: of.format,
            timeoutMs: of.timeout,
          }),
        )
        .optional(),
      heartbeat: z
        .strictObject({ token: secret })
        .transform((of): BackupSource => ({ kind: 'heartbeat', token: of.token }))
        .optional(),
      objectStore: objectStore(secret)
        .extend({ pattern })
        .transform(({ pattern, ...of }): BackupSource => ({ kind: 'objectStore', objectStore: of, pattern }))
        .optional(),
    })
    .refine((given) => kinds.filter((kind) => given?.[kind] !== undefined).length === 1, {
      when: ({ value }) => typeof value === 'object' && value !== null,
      error: `not exactly one source; use one of ${kinds.join(', ')}`,
    })
    .transform(
      (given) => kinds.map((kind) => given[kind]).find((found) => found !== undefined) as BackupSource,
    );

/** One entry of `backups` (CONTRACT, Configuration); what is left out comes from the spec's schedule table. */
export const backupBlock = ({ secret }: { secret: z.ZodType<Secret> }) =>
  z
    .strictObject({
      name: z.string().regex(/^[\w.-]+$/, 'not a name; use letters, digits, -, _ and .'),
      store: z.string().min(1).optional().describe('Name of an entry of stores; needed but for type config.'),
      database: z.enum(['persistence', 'visibility']).optional(),
      type: z.enum(backupTypes),
      source: source(secret),
      schedule: z
        .strictObject({ every: time().optional(), grace: time().optional() })
        .default({})
        .describe('How often a success is due.'),
      retention: z
        .strictObject({ keep: time().optional(), minCount: z.int().min(0).default(1) })
        .prefault({})
        .describe('How long backups are kept.'),
      integrity: z
        .strictObject({
          level: z.enum(['none', 'header', 'checksum', 'full']).default('header'),
          minBytes: z.int().min(0).default(1),
          maxShrink: z
            .number()
            .min(0)
            .max(1)
            .default(0.5)
            .describe('Share by which a backup may be smaller than the last.'),
        })
        .prefault({}),
      offsite: z
        .strictObject({ objectStore: objectStore(secret), maxLag: time().prefault('2h') })
        .transform((of) => ({ objectStore: of.objectStore, maxLagMs: of.maxLag }))
        .optional(),
    })
    .transform(({ schedule, retention, ...rest }): BackupOptions => {
      const usual = specSchedule[rest.type];
      return {
        ...rest,
        schedule: { everyMs: schedule.every ?? usual.everyMs, graceMs: schedule.grace ?? usual.graceMs },
        retention: { keepMs: retention.keep ?? usual.keepMs, minCount: retention.minCount },
      };
    });
