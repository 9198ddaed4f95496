import type { BackupFailureReason, BackupResult } from '../../core/reasons.ts';
import { formatDuration } from '../../core/text-formats.ts';
import type { BackupOptions } from './block.ts';
import type { Artifact, Evidence, VerifyAnswer } from './evidence.ts';
import { failureKey, keyOf, type Ledger, mostAheadMs, openLedger, unfinishedKey } from './ledger.ts';
import { retentionFault } from './retention.ts';

/**
 * Assesses one backup. A pure function of its evidence, new answers of verifications, the ledger of the last assessment and the
 * time. Each artifact, each unfinished or failed run and each missed slot is one result, counted once: the ledger remembers what
 * has been counted, across restarts of the agent.
 *
 * Slots follow the start of the newest success: a backup is `late` when none has followed within the interval plus the grace, and
 * `missed` when the next slot has passed in the same way.
 */

export interface Assessment {
  reason?: BackupFailureReason;
  msg: string;
  ledger: Ledger;
  /** Results to count now. */
  results: Partial<Record<BackupResult, number>>;
  /** Verified artifacts, oldest first: a recovery may be based on them. */
  usable: readonly Artifact[];
  /** Complete artifacts that wait for their verification, or could not be verified. */
  unverified: readonly Artifact[];
  isRetentionKept: boolean;
}

/** Results that are failures of a backup. `late` is not among them, because a late backup may still come. */
export const failures: ReadonlySet<BackupResult> = new Set([
  'failed',
  'missed',
  'incomplete',
  'corrupt',
  'shrunken',
]);

const keptDurations = 9;

export function assess(
  options: BackupOptions,
  evidence: Evidence,
  answers: Readonly<Record<string, VerifyAnswer>>,
  before: Ledger | undefined,
  nowMs: number,
): Assessment {
  const ledger = openLedger(evidence, answers, before, nowMs);
  const results: Assessment['results'] = {};
  const count = (result: BackupResult, times = 1) => {
    if (times > 0) results[result] = (results[result] ?? 0) + times;
  };
  const once = (id: string, result: BackupResult, isOld: boolean, isAnother = false) => {
    ledger.counted[id] = result;
    if ((before?.counted[id] !== result || isAnother) && !isOld) count(result);
  };

  const isDue = ({ startMs }: Artifact) => startMs <= nowMs + mostAheadMs;
  const ahead = evidence.artifacts.filter((artifact) => !isDue(artifact));
  const sorted = sortArtifacts(options, evidence.artifacts.filter(isDue), ledger);
  const newest = sorted.at(-1);
  for (const { artifact, result } of sorted) {
    if (result === undefined) continue;
    // Only the newest of the artifacts from before the first start of the agent is counted.
    const isOld = before === undefined && artifact !== newest?.artifact;
    once(keyOf(artifact), result, isOld);
    if (result === 'success') countSuccess(options, ledger, artifact, nowMs, count, before);
    else ledger.lastFailureMs = Math.max(ledger.lastFailureMs ?? 0, artifact.endMs);
  }
  for (const { id, sinceMs } of evidence.unfinished) {
    // A later attempt may have the same name.
    const isAnother = before !== undefined && sinceMs > (before.lastFailureMs ?? 0);
    once(unfinishedKey(id), 'incomplete', before === undefined, isAnother);
    ledger.lastFailureMs = Math.max(ledger.lastFailureMs ?? 0, sinceMs);
  }
  for (const { id, endMs } of evidence.failures) {
    once(failureKey(id), 'failed', before === undefined);
    ledger.lastFailureMs = Math.max(ledger.lastFailureMs ?? 0, endMs);
  }
  if (isCompared(options)) assessDrift(options, evidence, ledger, nowMs, count);
  else assessSlots(options, ledger, nowMs, count);

  const usable = sorted.filter(({ result, isVerified }) => result === 'success' && isVerified);
  const unverified = sorted.filter(({ result, isVerified }) => !isVerified && result !== 'corrupt');
  const good = sorted.filter(({ result }) => result === 'success').map(({ artifact }) => artifact);
  const kept = { oldest: sorted[0]?.artifact, good, unsettled: evidence.unsettled ?? 0 };
  const broken = retentionFault(options, kept, nowMs);
  return {
    ...verdict({ options, evidence, ledger, sorted, ahead, broken, nowMs }),
    ledger,
    results,
    usable: usable.map(({ artifact }) => artifact),
    unverified: unverified.map(({ artifact }) => artifact),
    isRetentionKept: broken === undefined,
  };
}

interface Sorted {
  artifact: Artifact;
  /** Missing while the verification is awaited. */
  result?: BackupResult;
  isVerified: boolean;
}

function sortArtifacts(
  { type, integrity }: BackupOptions,
  artifacts: readonly Artifact[],
  { sinceMs, verified, files: known }: Ledger,
): Sorted[] {
  let previousBytes = 0;
  return artifacts.map((found, index) => {
    const answer = verified[keyOf(found)];
    const artifact = answer?.content ? { ...found, content: { ...found.content, ...answer.content } } : found;
    const verification = artifact.verified ? { result: artifact.verified } : answer;
    // Only the newest of the artifacts from before the first start of the agent is verified.
    const isDue = artifact.endMs > sinceMs || index === artifacts.length - 1;
    const isAwaited =
      isDue && verification === undefined && artifact.verify !== undefined && integrity.level !== 'none';
    const isVerified = verification?.result === 'ok';
    const leastBytes = type === 'full' ? previousBytes * (1 - integrity.maxShrink) : 0;
    if (verification?.result === 'corrupt') return { artifact, result: 'corrupt', isVerified };
    if ((artifact.files ?? 0) < (known?.[artifact.id] ?? 0))
      return { artifact, result: 'incomplete', isVerified };
    if (artifact.sizeBytes < integrity.minBytes) return { artifact, result: 'incomplete', isVerified };
    if (isAwaited) return { artifact, isVerified };
    // The size is compared with that of the previous artifact, whatever its result: a database that was emptied on purpose is
    // reported only once.
    previousBytes = artifact.sizeBytes;
    if (artifact.sizeBytes < leastBytes) return { artifact, result: 'shrunken', isVerified };
    return { artifact, result: 'success', isVerified };
  });
}

function countSuccess(
  options: BackupOptions,
  ledger: Ledger,
  artifact: Artifact,
  nowMs: number,
  count: (result: BackupResult, times?: number) => void,
  before: Ledger | undefined,
): void {
  const { startMs, endMs, sizeBytes } = artifact;
  // A copy of the configuration is as new as the check that finds it equal to the live files, so its time is not used.
  if (isCompared(options) || (ledger.success && startMs <= ledger.success.startMs)) return;
  // Counts the slots that passed before this success and that no check has counted.
  if (before) assessSlots(options, ledger, Math.min(endMs, nowMs), count);
  ledger.success = { startMs, endMs, sizeBytes };
  ledger.overdue = 0;
  if (endMs > startMs) {
    ledger.durationsMs = [...ledger.durationsMs, endMs - startMs].slice(-keptDurations);
  }
}

/** How late a backup may be, ms: the grace of the configuration, or else its usual duration plus the usual grace. */
function graceMs({ schedule }: BackupOptions, { durationsMs }: Pick<Ledger, 'durationsMs'>): number {
  if (schedule.graceMs !== undefined) return schedule.graceMs;
  const median = [...durationsMs].sort((one, other) => one - other)[Math.floor(durationsMs.length / 2)];
  return (median ?? 0) + schedule.usualGraceMs;
}

/** The greatest number of slots that are counted at once, in case the clock has jumped. */
const slotLimit = 1000;

function assessSlots(
  options: BackupOptions,
  ledger: Ledger,
  atMs: number,
  count: (result: BackupResult, times?: number) => void,
): void {
  const { everyMs } = options.schedule;
  if (everyMs === undefined || everyMs === 0) return;
  const baseMs = (ledger.success?.startMs ?? ledger.sinceMs) + graceMs(options, ledger);
  const passed = Math.floor((atMs - baseMs) / everyMs);
  const overdue = Math.min(Math.max(passed, 0), ledger.overdue + slotLimit);
  if (overdue <= ledger.overdue) return;
  if (ledger.overdue === 0) count('late');
  count('missed', overdue - Math.max(ledger.overdue, 1));
  // The agent may be started long after the slot has passed.
  if (overdue > 1) ledger.lastFailureMs = Math.max(ledger.lastFailureMs ?? 0, baseMs + overdue * everyMs);
  ledger.overdue = overdue;
}

/** Whether copies are compared with live files, which is done for backups of the configuration. */
const isCompared = ({ source }: BackupOptions) => source.kind === 'configuration';

/** Assesses a copy of the configuration. It is good as long as it equals the live files, so its time moves with the clock. */
function assessDrift(
  options: BackupOptions,
  { artifacts, drift = [] }: Evidence,
  ledger: Ledger,
  nowMs: number,
  count: (result: BackupResult, times?: number) => void,
): void {
  const newest = artifacts.at(-1);
  if (drift.length === 0 && newest) {
    ledger.success = { startMs: nowMs, endMs: nowMs, sizeBytes: newest.sizeBytes };
    ledger.driftSinceMs = undefined;
    ledger.overdue = 0;
    return;
  }
  ledger.driftSinceMs ??= nowMs;
  const dueMs = (options.schedule.everyMs ?? 0) + graceMs(options, ledger);
  if (ledger.overdue === 0 && nowMs - ledger.driftSinceMs > dueMs) {
    ledger.overdue = 1;
    count('late');
  }
}

interface Assessed {
  options: BackupOptions;
  evidence: Evidence;
  ledger: Ledger;
  sorted: readonly Sorted[];
  /** Artifacts with a time in the future. */
  ahead: readonly Artifact[];
  /** How the retention is broken. */
  broken: string | undefined;
  nowMs: number;
}

const fault = (reason: BackupFailureReason, msg: string) => ({ reason, msg });

/** What is wrong with the newest backup itself; undefined if nothing is. */
function faultOfNewest({ artifact, result }: Sorted, ledger: Ledger) {
  if (result === 'corrupt') {
    const why = ledger.verified[keyOf(artifact)]?.msg ?? artifact.fault ?? 'its tool reports it';
    return fault('corrupt', `the newest backup is damaged: ${why}`);
  }
  if (result === 'shrunken') {
    const what = `the newest backup has ${artifact.sizeBytes} bytes, far fewer than the one before`;
    return fault('shrunken', what);
  }
  if (result !== 'incomplete') return undefined;
  const { files, id } = artifact;
  const gone = (ledger.files?.[id] ?? 0) - (files ?? 0);
  return fault('incomplete', gone > 0 ? `${gone} files of ${id} are gone` : 'the newest backup is too small');
}

function verdict({ options, evidence, ledger, sorted, ahead, broken, nowMs }: Assessed): {
  reason?: BackupFailureReason;
  msg: string;
} {
  const newest = sorted.at(-1);
  const { success } = ledger;
  if (evidence.missingDirectory !== undefined) {
    const missing = `${evidence.missingDirectory} does not exist`;
    if (!success)
      return fault('no_backup', `${missing}: no backup has run yet, or the volume is not mounted`);
    const age = formatDuration(Math.max(0, nowMs - success.endMs));
    return fault('directory_gone', `${missing}, and the newest backup there ended ${age} ago`);
  }
  if ((evidence.drift?.length ?? 0) > 0) {
    const names = evidence.drift!.slice(0, 3).join(', ');
    const msg = `the newest copy differs from the live files: ${names}`;
    // The objective has no grace, unlike the schedule.
    const isMissed = nowMs - (ledger.driftSinceMs ?? nowMs) >= options.objectives.rpoMs;
    return isMissed || ledger.overdue > 0 ? fault('drifted', msg) : { msg };
  }
  const damaged = sorted.find(({ artifact, result }) => result === 'corrupt' && artifact.fault !== undefined);
  if (evidence.log && damaged) return fault('corrupt', `a segment is damaged: ${damaged.artifact.fault}`);
  const inNewest = newest && faultOfNewest(newest, ledger);
  if (inNewest) return inNewest;
  const unread = newest && ledger.unread?.[keyOf(newest.artifact)];
  if (unread !== undefined) return fault('evidence_unreadable', `cannot be read: ${unread}`);
  const lastFailed = evidence.failures.at(-1);
  if (lastFailed && lastFailed.endMs > (success?.endMs ?? 0)) return fault('backup_failed', lastFailed.msg);
  if (ledger.overdue > 0) {
    const since = success ? `for ${formatDuration(nowMs - success.startMs)}` : 'yet';
    const [first] = ahead;
    const future = first ? `; ${first.id} has a time in the future` : '';
    // A gap stays when the next segment comes: only a new base backup ends it.
    const gap = evidence.gap === undefined ? '' : `; ${evidence.gap}`;
    return fault(success ? 'late' : 'no_backup', `no backup has succeeded ${since}${future}${gap}`);
  }
  if (evidence.unfinished.some(({ sinceMs }) => sinceMs > (success?.endMs ?? 0))) {
    return fault('incomplete', 'a backup was started but not completed');
  }
  if (evidence.gap !== undefined) return fault('log_gap', evidence.gap);
  if (broken !== undefined && success) return fault('retention', broken);
  if (!success && newest === undefined) return { msg: 'no backup yet' };
  if (!success) return { msg: 'the newest backup is being verified' };
  return { msg: `newest backup ended ${formatDuration(Math.max(0, nowMs - success.endMs))} ago` };
}
