import * as z from 'zod';
import type { Secret } from '../../core/access.ts';
import { type BackupType, backupTypes, type IntegrityLevel, integrityLevels } from '../../core/reasons.ts';
import {
  type BackupSource,
  type ObjectStoreOptions,
  objectStore,
  source,
  time,
  wait,
} from './source-blocks.ts';

/** The destination of copies of backups: exactly one of the two places. */
interface OffsiteOptions {
  objectStore?: ObjectStoreOptions;
  directory?: string;
  maxLagMs: number;
  /** Whether copies are compared with the MD5 that the object store states, too. */
  checksums: boolean;
}

/**
 * The options of one entry of `backups`, with defaults filled in: those of schedule, objectives and retention are the spec's for
 * the type.
 */
export interface BackupOptions {
  name: string;
  /** Name of an entry of `stores`; missing for the configuration. */
  store?: string;
  /** Missing for a backup of all databases of a store, and for the configuration. */
  database?: 'persistence' | 'visibility';
  type: BackupType;
  source: BackupSource;
  /**
   * The interval in which a success is due. Without an interval, a success is due at every change. Without a configured grace a
   * backup may be late by its usual duration plus `usualGraceMs`.
   */
  schedule: { everyMs?: number; graceMs?: number; usualGraceMs: number };
  objectives: { rpoMs: number; rtoMs: number };
  /** How long backups are retained, and how many at least. Without a time they are retained for ever. */
  retention: { keepMs?: number; minCount: number };
  integrity: {
    level: IntegrityLevel;
    /** The interval after which a backup is verified again. */
    everyMs: number;
    minBytes: number;
    maxShrink: number;
    bytesPerSecond: number;
  };
  offsite?: OffsiteOptions;
  /** The interval in which the evidence is read. */
  intervalMs: number;
}

const offsite = (secret: z.ZodType<Secret>) =>
  z
    .strictObject({
      objectStore: objectStore(secret).optional().describe('An S3-compatible bucket.'),
      directory: z
        .string()
        .min(1)
        .optional()
        .describe('A second directory, such as a mounted directory of another machine.'),
      maxLag: time().prefault('2h').describe('How long after its end the copy of a backup may be missing.'),
      checksums: z
        .boolean()
        .default(true)
        .describe(
          'Whether copies are compared with the ETag of the object store; false for a bucket with SSE-KMS, whose ETags are no checksums.',
        ),
    })
    .refine((given) => (given.objectStore === undefined) !== (given.directory === undefined), {
      when: ({ value }) => typeof value === 'object' && value !== null,
      error: 'not exactly one place; use objectStore or directory',
    })
    .transform(
      (of): OffsiteOptions => ({
        objectStore: of.objectStore,
        directory: of.directory,
        maxLagMs: of.maxLag,
        checksums: of.checksums,
      }),
    );

const hourMs = 36e5;
const dayMs = 24 * hourMs;

/**
 * The spec's schedule table (Backup and restore operations). The upper end of a range of RTO is used. The grace is added to a
 * backup's usual duration before the backup is late; one hour of it is from the spec's alert at 25 hours.
 */
const specSchedule: Readonly<
  Record<BackupType, { everyMs?: number; graceMs: number; keepMs?: number; rpoMs: number; rtoMs: number }>
> = {
  full: { everyMs: dayMs, graceMs: hourMs, keepMs: 30 * dayMs, rpoMs: dayMs, rtoMs: 4 * hourMs },
  incremental: { everyMs: hourMs, graceMs: 15 * 6e4, keepMs: 7 * dayMs, rpoMs: hourMs, rtoMs: 2 * hourMs },
  log: { everyMs: 5 * 6e4, graceMs: 5 * 6e4, keepMs: 7 * dayMs, rpoMs: 5 * 6e4, rtoMs: hourMs / 2 },
  config: { graceMs: 5 * 6e4, rpoMs: 0, rtoMs: 5 * 6e4 },
};

const scheduleBlock = z
  .strictObject({
    every: time()
      .optional()
      .describe('Time between successes. Default: full 24h, incremental 1h, log 5m, config on each change.'),
    grace: time()
      .optional()
      .describe(
        'Time that a success may be late. Default: the usual duration plus 1h (full), 15m (incremental) or 5m (log, config).',
      ),
  })
  .default({})
  .describe('How often a success is due, and how late it may be.');

const objectivesBlock = z
  .strictObject({
    rpo: time()
      .optional()
      .describe('Recovery point objective. Default: full 24h, incremental 1h, log 5m, config 0.'),
    rto: time()
      .optional()
      .describe('Recovery time objective. Default: full 4h, incremental 2h, log 30m, config 5m.'),
  })
  .default({})
  .describe('Recovery point and recovery time objective.');

const retentionBlock = z
  .strictObject({
    keep: time()
      .optional()
      .describe('How long backups are kept. Default: full 30d, incremental and log 7d, config forever.'),
    minCount: z.int().min(0).default(1).describe('Minimum number of backups.'),
  })
  .prefault({})
  .describe('How long backups are kept, and the minimum number.');

const integrityBlock = z
  .strictObject({
    level: z
      .enum(integrityLevels)
      .default('full')
      .describe(
        'How much of a backup is read to verify it; segments of a log are read to their ends at any level.',
      ),
    every: time().prefault('7d').describe('Time after which a backup is verified again.'),
    minBytes: z.int().min(0).default(1).describe('A smaller backup counts as incomplete.'),
    maxShrink: z
      .number()
      .min(0)
      .max(1)
      .default(0.5)
      .describe('Maximum share by which a backup may be smaller than the previous one.'),
    bytesPerSecond: z
      .int()
      .min(1024)
      .default(50 * 1024 * 1024)
      .describe('How fast backups are read to verify them.'),
  })
  .prefault({})
  .transform(({ every, ...of }) => ({ ...of, everyMs: every }))
  .describe('How backups are verified.');

/**
 * The schema of one entry of `backups` (docs/reference/configuration.md). Values that are left out come from the spec's schedule
 * table.
 */
export const backupBlock = ({ secret }: { secret: z.ZodType<Secret> }) =>
  z
    .strictObject({
      name: z
        .string()
        .regex(/^[\w.-]+$/, 'not a name; use letters, digits, -, _ and .')
        .describe('Name of the backup, the value of the label backup.'),
      store: z.string().min(1).optional().describe('Name of an entry of stores; not for type config.'),
      database: z
        .enum(['persistence', 'visibility'])
        .optional()
        .describe('Database of the store. Default: all of them.'),
      type: z.enum(backupTypes).describe('Row of the schedule table that the defaults come from.'),
      source: source(secret).describe('Where evidence of the backup comes from; exactly one key.'),
      schedule: scheduleBlock,
      objectives: objectivesBlock,
      retention: retentionBlock,
      integrity: integrityBlock,
      offsite: offsite(secret).optional().describe('Where a second copy of each backup must be.'),
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
