import type { BackupType } from '../../core/reasons.ts';
import type { StoreOptions } from '../../probes/stores/store-options.ts';
import { type OffsiteCopies, quoted } from '../backup-offsite.ts';

/** One job of a plan. */
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

export interface PlanTarget {
  /** Where the backups are written. */
  directory: string;
  offsite: OffsiteCopies;
  store: StoreOptions;
  role: string;
  database: string;
  host: string;
  port: number;
}

export function entryOf(
  { store, role }: PlanTarget,
  name: string,
  type: BackupType,
  rest: object,
): Record<string, unknown> {
  return { name, store: store.name, database: role, type, ...rest };
}

/** Names of jobs, entries and files: a store may be called anything. */
export const safe = (name: string) => name.replace(/[^\w.-]/g, '_');

/** A name in a regular expression. */
export const literal = (text: string) => text.replace(/[.]/g, '\\.');

/** A path of which the end is expanded by the shell, such as a time. */
export const pathTo = (directory: string, expanded: string) => `${quoted(`${directory}/`)}${expanded}`;

/** A dump that failed leaves nothing behind, nor does one that was killed longer than an hour ago. */
export const cleanUp = (directory: string, prefix: string) => [
  `trap 'rm -f "$file.part" "$file".*.part' EXIT`,
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*.part' -mmin +60 -delete`,
];

/** A run that is still under way is not run beside itself. */
export const alone = (directory: string, name: string) => [
  `exec 9> ${quoted(`${directory}/.${name}.lock`)}`,
  'flock --nonblock 9 || exit 0',
];

export const prune = (directory: string, prefix: string, days: number) =>
  `find ${quoted(directory)} -maxdepth 1 -name '${prefix}-*' -mtime +${days} -exec rm -r {} +`;
