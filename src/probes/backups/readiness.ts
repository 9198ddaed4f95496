import type { RecoveryFailureReason } from '../../core/reasons.ts';
import { formatDuration } from '../../core/text-formats.ts';
import { type Chain, recoveryOf, type Standing } from './recovery-point.ts';

/** The newest drill of a procedure that restores a database. */
export interface Drill {
  procedure: string;
  endMs: number;
  durationMs: number;
}

interface Readiness {
  isReady: boolean;
  reason?: RecoveryFailureReason;
  msg: string;
  chain?: Chain;
  /** When the recovery point becomes too old, ms since the epoch. */
  untilMs?: number;
}

/**
 * Whether a database could be recovered within its objectives now: the recovery point is known and within the tightest objective,
 * and the newest drill took no longer than the tightest recovery time objective. If something of this is not known, the database
 * is not ready.
 */
export function readinessOf(
  standings: readonly Standing[],
  drill: Drill | undefined,
  nowMs: number,
): Readiness {
  const unreadable = standings.find(({ assessed }) => assessed === undefined);
  if (unreadable) {
    const why = unreadable.unreadable ?? 'not read yet';
    return notReady('evidence_unreadable', `backup ${unreadable.options.name}: ${why}`);
  }
  const { chain, unknown } = recoveryOf(standings, nowMs);
  if (!chain) return notReady(unknown!.reason, unknown!.msg);
  const [tightest] = standings
    .map(({ options: { name, objectives } }) => ({ name, rpoMs: objectives.rpoMs }))
    .sort((one, other) => one.rpoMs - other.rpoMs);
  const ageMs = Math.max(0, nowMs - chain.recoveryPointMs);
  const { note } = chain;
  const loss = formatDuration(ageMs);
  const why = note === undefined ? '' : `; ${note}`;
  const { name, rpoMs } = tightest!;
  if (ageMs > rpoMs) {
    const msg = `${loss} would be lost; the objective of ${name} is ${formatDuration(rpoMs)}${why}`;
    return notReady('recovery_point_too_old', msg, chain);
  }
  const slow = drillFault(standings, drill);
  if (slow) return notReady(slow.reason, `at most ${loss} would be lost; ${slow.msg}`, chain);
  return {
    isReady: true,
    msg: `at most ${loss} would be lost${why}`,
    chain,
    untilMs: chain.recoveryPointMs + rpoMs,
  };
}

const notReady = (reason: RecoveryFailureReason, msg: string, chain?: Chain): Readiness => ({
  isReady: false,
  reason,
  msg,
  chain,
});

/** The fault of a drill. The time to replay a log is not known until it was replayed once. */
function drillFault(standings: readonly Standing[], drill: Drill | undefined) {
  const rtoMs = Math.min(...standings.map(({ options }) => options.objectives.rtoMs));
  const objective = `the objective is ${formatDuration(rtoMs)}`;
  if (drill === undefined) {
    if (!standings.some(({ options }) => options.type === 'log')) return undefined;
    const msg = `how long a restore with the log takes has never been measured; ${objective}: run svc-agent recover, or a rehearsal`;
    return { reason: 'drill_missing' as const, msg };
  }
  if (drill.durationMs <= rtoMs) return undefined;
  const msg = `the last restore took ${formatDuration(drill.durationMs)}; ${objective}`;
  return { reason: 'drill_too_slow' as const, msg };
}

/** Whether the newest copy of each configuration is good, and was so within its objective. */
export function configurationReadiness(
  standings: readonly Standing[],
  nowMs: number,
): Pick<Readiness, 'reason' | 'msg'> {
  for (const { options, assessed, unreadable } of standings) {
    const { name, objectives } = options;
    if (assessed === undefined)
      return { reason: 'evidence_unreadable', msg: `backup ${name}: ${unreadable}` };
    const { success, overdue } = assessed.assessment.ledger;
    if (success === undefined) return { reason: 'no_backup', msg: `backup ${name}: there is no good copy` };
    const ageMs = nowMs - success.endMs;
    const isDrifted = (assessed.evidence.drift?.length ?? 0) > 0;
    if (isDrifted && ageMs > objectives.rpoMs)
      return { reason: 'drifted', msg: `backup ${name}: ${assessed.assessment.msg}` };
    if (!isDrifted && overdue > 0)
      return { reason: 'late', msg: `backup ${name}: ${assessed.assessment.msg}` };
  }
  return { msg: 'each copy equals the live files' };
}
