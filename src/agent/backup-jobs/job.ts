import type { BackupType, IntegrityLevel } from '../../core/reasons.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import { type OffsiteCopies, quoted } from '../backup-offsite.ts';

/** One job of a plan. */
export interface PlannedJob {
  name: string;
  type: BackupType;
  cron: string;
  /** Shell lines that must run once before the first backup. */
  once?: readonly string[];
  /** Shell lines, run with `set -eu`. */
  script: readonly string[];
  /** Shell lines for a restore; a schedule never runs them. */
  restore: readonly string[];
  /** The entry of `backups` for the job. */
  entry: Record<string, unknown>;
}

/** The time in the name of a backup, as shell text. */
export const stamp = '$(date -u +%Y%m%dT%H%M%SZ)';

export interface PlanTarget {
  /** The directory in which the backups are written. */
  directory: string;
  offsite: OffsiteCopies;
  store: StoreOptions;
  role: string;
  database: string;
  host: string;
  port: number;
}

/** The entry of `backups` for a job; without `role` it is about all databases of the store. */
export const entryOf = (
  { store, role }: Pick<PlanTarget, 'store'> & { role?: string },
  { name, type }: Pick<PlannedJob, 'name' | 'type'>,
  source: object,
  level: IntegrityLevel = 'full',
): PlannedJob['entry'] => ({
  ...{ name, store: store.name, ...(role !== undefined && { database: role }), type, source },
  integrity: { level },
});

/** Files or folders with a time in their names. `end` is what follows the time. */
export const timedFiles = (directory: string, prefix: string, end = '') => ({
  directory,
  pattern: `^${literal(prefix)}-(?<time>\\d{8}T\\d{6}Z)${literal(end)}$`,
});

/** What the scripts ensure: they write times in UTC, and refuse to run on a replica. */
export const ofPrimary = { timeZone: 'UTC', takenFrom: 'primary' };

/** A name for jobs, entries and files: the name of a store may have any characters. */
export const safe = (name: string) => name.replace(/[^\w.-]/g, '_');

/** A name, escaped for a regular expression. */
const literal = (text: string) => text.replace(/[.]/g, '\\.');

/** A path whose end is expanded by the shell, such as a time. */
export const pathTo = (directory: string, expanded: string) => `${quoted(`${directory}/`)}${expanded}`;

/** Lines that remove the remains of a failed dump, and of dumps that were killed more than an hour ago. */
export const cleanUp = (directory: string, prefix: string) => [
  `trap 'rm -f "$file.part" "$file".*.part' EXIT`,
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*.part' -mmin +60 -delete`,
];

/**
 * Lines for programs that copy the modes of a data directory: they give the copy to the group of the backups' directory, which is
 * that of the agent. A user outside of this group cannot do that, and has its backup all the same.
 */
export const readableForGroup = (directory: string, folder: string) => [
  `chgrp -R "$(stat -c %g ${quoted(directory)})" ${folder} || true`,
  `chmod -R g+rX ${folder}`,
];

/** Lines that prevent a second run while one is still under way. */
export const alone = (directory: string, name: string) => [
  `exec 9> ${quoted(`${directory}/.${name}.lock`)}`,
  'flock --nonblock 9 || exit 0',
];

export const prune = (directory: string, prefix: string, days: number) =>
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*' -mtime +${days} -exec rm -r {} +`;
