import { formatDuration } from '../../core/text-formats.ts';
import type { BackupOptions } from './block.ts';
import type { Artifact } from './evidence.ts';

/** The artifacts of one backup, oldest first. */
interface Kept {
  /** The oldest backup, good or not. */
  oldest: Artifact | undefined;
  good: readonly Artifact[];
  /** The number of backups whose files changed a moment ago; they may be good, too. */
  unsettled: number;
}

/** How the retention of a backup is broken: which rule, and by which backup. Undefined if it is kept. */
export function retentionFault(
  { retention, schedule, type }: BackupOptions,
  { oldest, good, unsettled }: Kept,
  nowMs: number,
): string | undefined {
  if (type === 'config') return undefined;
  if (good.length + unsettled < retention.minCount)
    return `too few are kept: ${good.length} good ${good.length === 1 ? 'backup is' : 'backups are'} there, and retention.minCount is ${retention.minCount}`;
  const slackMs = 2 * (schedule.everyMs ?? 0);
  if (retention.keepMs !== undefined && oldest && nowMs - oldest.endMs > retention.keepMs + slackMs) {
    const age = formatDuration(nowMs - oldest.endMs);
    return `${oldest.id} is kept too long: it ended ${age} ago, and retention.keep is ${formatDuration(retention.keepMs)}`;
  }
  return type === 'log' ? undefined : gapIn(good, schedule);
}

/** The first gap between two good backups, in which another backup should be. */
function gapIn(
  good: readonly Artifact[],
  { everyMs, usualGraceMs }: BackupOptions['schedule'],
): string | undefined {
  if (everyMs === undefined) return undefined;
  const at = good.findIndex((one, index) => {
    const before = good[index - 1];
    return before !== undefined && one.startMs - before.startMs > 2 * everyMs + usualGraceMs;
  });
  if (at === -1) return undefined;
  const [before, after] = [good[at - 1]!, good[at]!];
  const apart = formatDuration(after.startMs - before.startMs);
  return `some are missing: ${before.id} and ${after.id} are ${apart} apart, and one is due every ${formatDuration(everyMs)}`;
}
