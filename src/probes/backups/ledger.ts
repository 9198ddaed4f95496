import type { BackupResult } from '../../core/reasons.ts';
import type { Artifact, Evidence, VerifyAnswer } from './evidence.ts';
import { againstStore, type KnownStore } from './known-store.ts';

/** What is remembered about a backup between two assessments, and how an assessment begins with it. */

/** The ledger of one backup, as JSON. The snapshot of the state contains it together with the counters. */
export interface Ledger {
  /** When the backup was assessed for the first time, ms since the epoch. */
  sinceMs: number;
  /**
   * Results of artifacts and runs, by id and fingerprint. Results of artifacts that are gone come first, oldest first, because
   * the artifacts may come back, for example with their file system.
   */
  counted: Record<string, BackupResult>;
  /** Durations of the newest successes, oldest first, ms. */
  durationsMs: number[];
  /** The newest success; missing if there was none. */
  success?: Success;
  lastFailureMs?: number;
  /** The number of slots since the newest success that were counted: the first slot is late, each further slot is missed. */
  overdue: number;
  /** Since when the configuration differs from its newest copy, ms since the epoch, and whether that was counted as late. */
  driftSinceMs?: number;
  /** Answers of verifications, for the artifacts in `counted`. */
  verified: Record<string, VerifyAnswer>;
  /** Why the system refuses to read artifacts that are in evidence, by their keys. */
  unread?: Record<string, string>;
  /** The greatest number of files that each artifact had. It is stored where nothing else shows that a file is gone. */
  files?: Record<string, number>;
  /** What polls of the store have shown about it. */
  store?: KnownStore;
  /** The device of the file system with the directory in which backups were last found. */
  device?: number;
  /** The device of the file system with the off-site directory. */
  offsiteDevice?: number;
  /** The segment of a log up to which every segment was found off-site. */
  offsiteCopiedTo?: string;
}

interface Success {
  startMs: number;
  endMs: number;
  sizeBytes: number;
}

/** The key of one content of one artifact. */
export const keyOf = ({ id, fingerprint }: Artifact) => `${id} ${fingerprint}`;

/** A backup that states a start later than this from now is not counted until then: one of the clocks is wrong. */
export const mostAheadMs = 36e5;

export const unfinishedKey = (id: string) => `unfinished ${id}`;
export const failureKey = (id: string) => `run ${id}`;

/** How many results of artifacts that are gone are kept. */
const keptGone = 500;

/**
 * The keys in the last ledger that are not in evidence and are kept, oldest first. If nothing is in evidence, for example because
 * a file system is not mounted, all are kept.
 */
function keptKeys({ artifacts, unfinished, failures: runs }: Evidence, before: Ledger): readonly string[] {
  const there = new Set([
    ...artifacts.map(keyOf),
    ...unfinished.map(({ id }) => unfinishedKey(id)),
    ...runs.map(({ id }) => failureKey(id)),
  ]);
  const gone = Object.keys(before.counted).filter((key) => !there.has(key));
  return there.size === 0 ? gone : gone.slice(-keptGone);
}

const entriesOf = <T>(record: Readonly<Record<string, T>>, keys: readonly string[]): Record<string, T> =>
  Object.fromEntries(keys.flatMap((key) => (record[key] === undefined ? [] : [[key, record[key]]])));

/** The ledger of this assessment, in which none of its results is counted yet. */
export function openLedger(
  evidence: Evidence,
  answers: Readonly<Record<string, VerifyAnswer>>,
  before: Ledger | undefined,
  nowMs: number,
): Ledger {
  const known: Ledger = before ?? { sinceMs: nowMs, counted: {}, verified: {}, durationsMs: [], overdue: 0 };
  const gone = keptKeys(evidence, known);
  const present = evidence.artifacts.map(keyOf);
  const ledger: Ledger = {
    ...known,
    counted: entriesOf(known.counted, [...gone, ...present]),
    verified: entriesOf(known.verified, gone),
    durationsMs: [...known.durationsMs],
    unread: unreadOf(present, answers, known),
  };
  holdBack(ledger, nowMs);
  if (evidence.artifacts.some(({ files }) => files !== undefined)) {
    ledger.files = Object.fromEntries(
      evidence.artifacts.map(({ id, files = 0, recordedFiles = 0 }) => [
        id,
        Math.max(files, recordedFiles, before?.files?.[id] ?? 0),
      ]),
    );
  }
  for (const artifact of evidence.artifacts) {
    const answer = answers[keyOf(artifact)] ?? before?.verified[keyOf(artifact)];
    // A failed verification says nothing about the backup, which waits for the next verification.
    if (answer && !answer.isFailure)
      ledger.verified[keyOf(artifact)] = againstStore(answer, artifact, evidence);
  }
  return ledger;
}

/** A refusal stands until another answer is there: a verification may take longer than a check. */
function unreadOf(
  present: readonly string[],
  answers: Readonly<Record<string, VerifyAnswer>>,
  { unread = {} }: Ledger,
): Ledger['unread'] {
  const why = present.flatMap((key) => {
    const answer = answers[key];
    const msg = answer ? answer.isUnreadable && answer.msg : unread[key];
    return msg === undefined ? [] : [[key, msg] as const];
  });
  return why.length > 0 ? Object.fromEntries(why) : undefined;
}

/** Limits times in the future, which come from a clock that was ahead: they would hide that backups are late. */
function holdBack(ledger: Ledger, nowMs: number): void {
  const { success } = ledger;
  ledger.sinceMs = Math.min(ledger.sinceMs, nowMs);
  if (ledger.driftSinceMs !== undefined) ledger.driftSinceMs = Math.min(ledger.driftSinceMs, nowMs);
  if (success && success.startMs > nowMs + mostAheadMs) {
    ledger.success = { ...success, startMs: nowMs, endMs: nowMs };
  }
}
