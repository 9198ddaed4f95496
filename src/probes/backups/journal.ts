import { mkdirSync } from 'node:fs';
import { appendFile, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText, systemCode } from '../../core/errors.ts';
import { makeDirectorySync } from '../../core/make-directory.ts';
import { type Evidence, type RunRecord, unreadable, type VerifyAnswer } from './evidence.ts';

export type { RunRecord };

/** How many lines remain when the file is rewritten, and from how many lines on it is rewritten. */
const keptLines = 200;
const rewriteLines = 1000;

/**
 * Runs of a backup or of a recovery procedure, as `svc-agent backup run`, heartbeats and `svc-agent recover` record them: a file
 * of JSON lines for each name in the state directory. Lines are appended in one write each, so that a crash leaves whole lines,
 * or a last line that is cut off and is skipped.
 */
export function journalPath(stateDirectory: string, kind: 'backup' | 'recovery', name: string): string {
  return join(stateDirectory, `${kind}-runs`, `${encodeURIComponent(name)}.jsonl`);
}

/** Appends one record. Throws the file system's error. */
export const recordRun = (path: string, record: RunRecord): Promise<void> => appendRecord(path, record);

async function appendRecord(path: string, record: object): Promise<void> {
  makeDirectorySync(mkdirSync, join(path, '..'), 0o750);
  await appendFile(path, `${JSON.stringify(record)}\n`, { mode: 0o640 });
  const lines = (await readFile(path, 'utf8')).split('\n');
  if (lines.length <= rewriteLines) return;
  const next = `${path}.${process.pid}.tmp`;
  await writeFile(next, lines.slice(-keptLines).join('\n'), { mode: 0o640 });
  await rename(next, path);
}

/** All records, oldest first; none if there is no file. Throws `evidence_unreadable` if it cannot be read. */
export async function readRuns(path: string): Promise<RunRecord[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOENT') return [];
    throw unreadable(`the record of runs cannot be read: ${errorText(thrown)}`, thrown);
  }
  const runs = new Map<number, RunRecord>();
  for (const line of text.split('\n')) {
    const record = recordOf(line);
    // A record with an end replaces the record with its start.
    if (record) runs.set(record.startMs, record);
  }
  return [...runs.values()].sort((one, other) => one.startMs - other.startMs);
}

function recordOf(line: string): RunRecord | undefined {
  try {
    const record = JSON.parse(line) as Partial<RunRecord> | null;
    return typeof record?.startMs === 'number' ? (record as RunRecord) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The answers of verifications, in a file beside the runs, so that a restarted agent and `svc-agent recover` need not read a big
 * backup again. `key` names the content and the level.
 */
export function verifiedAnswers(stateDirectory: string, name: string) {
  const path = join(stateDirectory, 'backup-verified', `${name}.jsonl`);
  return {
    /** The recorded answers; empty if the file cannot be read, so that backups are verified again. */
    async read(): Promise<Map<string, VerifyAnswer>> {
      const text = await readFile(path, 'utf8').catch(() => '');
      const answers = new Map<string, VerifyAnswer>();
      for (const line of text.split('\n')) {
        try {
          const { key, answer } = JSON.parse(line) as { key: string; answer: VerifyAnswer };
          answers.set(key, answer);
        } catch {
          // This is the incomplete last line of a process that was killed.
        }
      }
      return answers;
    },
    /** Records an answer. A backup whose answer cannot be recorded is verified again later. */
    record: (key: string, answer: VerifyAnswer) => appendRecord(path, { key, answer }).catch(() => {}),
  };
}

/** A run without an end counts as unfinished after this time. */
const hungMs = 24 * 36e5;

/** Runs as evidence by themselves, for sources that have no other evidence. */
export function evidenceOfRuns(runs: readonly RunRecord[], nowMs: number): Evidence {
  return {
    artifacts: runs
      .filter((run): run is RunRecord & { endMs: number } => run.status === 0 && run.endMs !== undefined)
      .map(({ startMs, endMs, sizeBytes }) => ({
        id: `run ${new Date(startMs).toISOString()}`,
        startMs,
        endMs,
        sizeBytes: sizeBytes ?? Number.MAX_SAFE_INTEGER,
        fingerprint: '',
        method: 'other',
      })),
    ...faultsOfRuns(runs, nowMs),
  };
}

/** What the records of runs add to artifacts that were found elsewhere. */
export function faultsOfRuns(
  runs: readonly RunRecord[],
  nowMs: number,
): Pick<Evidence, 'unfinished' | 'failures'> {
  return {
    unfinished: runs
      .filter(({ startMs, endMs }) => endMs === undefined && nowMs - startMs > hungMs)
      .map(({ startMs }) => ({ id: `run ${startMs}`, sinceMs: startMs })),
    failures: runs
      .filter(({ status, endMs }) => endMs !== undefined && status !== 0)
      .map(({ startMs, endMs, status, msg }) => ({
        id: String(startMs),
        endMs: endMs!,
        msg: msg ?? `the backup command ended with exit status ${status}`,
      })),
  };
}

/** When a backup that was complete at `endMs` was started, if a run was recorded for it; ms since the epoch. */
export function startOfRun(runs: readonly RunRecord[], endMs: number): number | undefined {
  const toleranceMs = 5_000;
  return runs.findLast(
    (run) => run.endMs !== undefined && run.startMs <= endMs && endMs <= run.endMs + toleranceMs,
  )?.startMs;
}
