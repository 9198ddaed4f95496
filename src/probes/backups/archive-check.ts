import type { CheckResult, LogState } from '../stores/store-report.ts';
import { listBackupDirectory } from './files.ts';
import { archivedName, type LogKind, placeSegments } from './formats/segments.ts';
import { gapIn } from './log-chain.ts';

/**
 * Checks whether the segment that the server reports as archived is in the archive, with no segment missing before it: the server
 * only knows that its command succeeded. There is no result if the agent cannot see the archive.
 *
 * The module is separate from the evidence of backups, because only the probe of a store with a visible archive loads it.
 */
export async function checkArchive(
  { directory, log }: { directory: string; log: LogKind },
  { archived }: LogState,
): Promise<CheckResult> {
  const check = 'wal_archive';
  if (archived === undefined) return { check, holds: 'unknown', found: 'no segment has been archived yet' };
  let names: string[] | undefined;
  try {
    names = await listBackupDirectory(directory);
  } catch (thrown) {
    return { check, holds: 'unknown', found: (thrown as Error).message };
  }
  if (!names) return { check, holds: false, found: `${directory} does not exist` };
  if (!names.some((name) => archivedName(name) === archived))
    return { check, holds: false, found: `${archived} is not in ${directory}` };
  const placed = placeSegments(
    log,
    names.map((name) => ({ name, endMs: 0, sizeBytes: 0 })),
  );
  const gap = gapIn({ kind: log, placed });
  if (gap !== undefined) return { check, holds: false, found: `${gap} in ${directory}` };
  return { check, holds: true, found: `${archived} is in ${directory}, none is missing before it` };
}
