import { errorText } from '../../core/errors.ts';
import type { BackupType, IntegrityLevel } from '../../core/reasons.ts';
import type { ArchivedLog } from '../stores/store-report.ts';
import type { BackupSource, ReportFormat } from './block.ts';
import { type Artifact, type Evidence, unreadable } from './evidence.ts';
import { readers } from './tool-reports.ts';

/**
 * Reads a tool's report. Throws `evidence_unreadable` when it is not of the form that the tool prints. A failure that
 * the tool reports without a time is one of `nowMs`.
 */
export function parseReport(format: ReportFormat, text: string, nowMs: number): Evidence {
  let value: unknown;
  try {
    value = format === 'barman' ? jsonDocuments(text) : JSON.parse(text);
  } catch (thrown) {
    throw unreadable(`the command printed no JSON for format ${format}`, thrown);
  }
  try {
    return readers[format](value, nowMs);
  } catch (thrown) {
    const why = `the command printed JSON, but not in the form of ${format}: ${errorText(thrown)}`;
    throw unreadable(why, thrown);
  }
}

/** Barman prints a document on one line without an end, so that those of several calls follow each other directly. */
function jsonDocuments(text: string): unknown[] {
  try {
    return [JSON.parse(text)];
  } catch {
    const lines = text.replaceAll(/\}\s*\{(?=\s*")/g, '}\n{').split('\n');
    return lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as unknown);
  }
}

/**
 * Backups of a tool with an archive of its own can be restored as far as the archive reaches. A report names its
 * last segment only; the server knows when it archived that one, and what was written since.
 */
export function withArchive(evidence: Evidence, server: ArchivedLog | undefined): Evidence {
  const { archived, archivedAtMs = 0, wholeUntilMs = 0 } = server ?? {};
  const toMs = Math.max(archivedAtMs, wholeUntilMs);
  const isSame = (one: string, other: string) => one.slice(0, 8) === other.slice(0, 8);
  const archive = evidence.archives?.find(
    ({ last }) => archived !== undefined && isSame(last, archived) && last >= archived,
  );
  if (archive === undefined || toMs === 0) return evidence;
  const artifacts = evidence.artifacts.map((artifact) => {
    const start = artifact.walStart;
    const isIn = start !== undefined && isSame(start, archive.first) && start >= archive.first;
    return isIn && artifact.endMs <= toMs ? { ...artifact, recoverableToMs: toMs } : artifact;
  });
  return { ...evidence, artifacts };
}

/**
 * The part of a report that an entry of this type observes, as its integrity level takes it. A full backup is not
 * replaced by an incremental one, but a newer full backup stands in for an incremental one. What a tool says of its
 * own backup is good for the level `header` alone; with `verify` the tool reads the backup again.
 */
export function forEntry(
  evidence: Evidence,
  type: BackupType,
  level: IntegrityLevel,
  { format, verify }: Pick<BackupSource & { kind: 'command' }, 'format' | 'verify'>,
): Evidence {
  const artifacts = evidence.artifacts
    .filter(({ parent }) => type !== 'full' || parent === undefined)
    .map((artifact): Artifact => {
      const { id, verified } = artifact;
      if (verified === 'corrupt' || format === 'json') return artifact;
      if (verify) {
        const argv = verify.map((word) => word.replaceAll('{id}', id));
        return { ...artifact, verified: undefined, verify: { path: id, tool: { format, argv } } };
      }
      return level === 'header' ? artifact : { ...artifact, verified: 'unknown' };
    });
  return { ...evidence, artifacts };
}
