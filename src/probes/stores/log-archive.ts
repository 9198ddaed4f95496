import { archivedName, type LogKind, segmentRuns } from '../backups/segments.ts';
import type { Finding } from '../probe.ts';
import type { Remembered } from './store-changes.ts';
import type { ArchivedLog, CheckResult, LogState } from './store-report.ts';

/**
 * How far a log is archived at the time of a poll. When nothing was written for as long as it takes to archive what
 * was, nothing is left to archive.
 */
export function archivedLog(
  { isArchivedWhole, closes, ...log }: LogState,
  { log: still }: Remembered,
  nowMs: number,
): ArchivedLog {
  const isIdle = closes && still && nowMs - Math.max(still.sinceMs, closes.fromMs) > closes.withinMs;
  return { ...log, ...((isArchivedWhole || isIdle) && { wholeUntilMs: nowMs }) };
}

/** The log in the finding of a store's probe. */
export const archivedLogOf = (finding: Finding | undefined): ArchivedLog | undefined =>
  finding?.details?.log as ArchivedLog | undefined;

/** A directory in which the configuration says that segments are archived. */
export interface LogArchive {
  directory: string;
  log: LogKind;
}

/**
 * Whether the segment that the server calls archived is in the archive, with none missing before it. The server
 * only knows that its command succeeded. No result without an archive that the agent can see.
 */
export async function archiveCheck(
  { directory, log }: LogArchive,
  { archived }: LogState,
): Promise<CheckResult> {
  const check = 'wal_archive';
  if (archived === undefined) return { check, holds: 'unknown', found: 'no segment was archived yet' };
  const { listBackupDirectory } = await import('../backups/files.ts');
  let names: string[] | undefined;
  try {
    names = await listBackupDirectory(directory);
  } catch (thrown) {
    return { check, holds: 'unknown', found: (thrown as Error).message };
  }
  if (!names) return { check, holds: false, found: `${directory} does not exist` };
  if (!names.some((name) => archivedName(name) === archived))
    return { check, holds: false, found: `${archived} is not in ${directory}` };
  const runs = segmentRuns(
    log,
    names.map((name) => ({ name, endMs: 0, sizeBytes: 0 })),
  );
  if (runs.length > 1) {
    const [one, other] = runs.slice(-2) as [(typeof runs)[0], (typeof runs)[0]];
    const found = `segments are missing between ${one.last} and ${other.first} in ${directory}`;
    return { check, holds: false, found };
  }
  return { check, holds: true, found: `${archived} is in ${directory}, none is missing before it` };
}
