import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { BackupResult } from '../../core/reasons.ts';
import type { Finding, Sample } from '../probe.ts';
import { type Assessment, failures } from './assessment.ts';
import type { BackupOptions } from './block.ts';
import type { Artifact, Evidence, VerifyAnswer } from './evidence.ts';
import { keyOf } from './ledger.ts';
import type { ArchivedSegments } from './log-chain.ts';
import type { OffsiteStanding } from './offsite.ts';
import { recoveryPointOf, type Standing } from './recovery-point.ts';

/** The labels of every metric of one backup. */
export const labelsOf = ({ name, store, database, type }: BackupOptions) => ({
  backup: name,
  store: store ?? '',
  database: database ?? '',
  backup_type: type,
});

interface FoundBeside {
  /** All backups of the store, including this one. */
  siblings: readonly Standing[];
  offsite: OffsiteStanding | undefined;
  nowMs: number;
}

/** The finding of a check of one backup: its verdict, its gauges, its counts, and the details of `/api/status`. */
export function backupFinding(
  backup: BackupOptions,
  evidence: Evidence,
  assessment: Assessment,
  { siblings, offsite, nowMs }: FoundBeside,
): Finding {
  const uncleared = evidence.snapshots?.filter((name) => offsite?.copied?.includes(name)) ?? [];
  return {
    ...verdictOf(assessment, offsite, uncleared),
    gauges: gaugesOf(backup, evidence, assessment, { siblings, offsite, nowMs }),
    increases: increasesOf(labelsOf(backup), assessment),
    details: detailsOf(backup, evidence, assessment),
    remember: assessment.ledger,
  };
}

function gaugesOf(
  backup: BackupOptions,
  evidence: Evidence,
  { ledger, isRetentionKept }: Assessment,
  { siblings, offsite, nowMs }: FoundBeside,
): Sample[] {
  const labels = labelsOf(backup);
  const own = siblings.find(({ options }) => options.name === backup.name)!;
  const sample = (name: AgentMetricName, value: number | undefined): Sample[] =>
    value === undefined ? [] : [{ name, labels, value }];
  const seconds = (ms: number | undefined) => (ms === undefined ? undefined : ms / 1000);
  const durationMs = ledger.success && ledger.success.endMs - ledger.success.startMs;
  const integrity = integrityOf(evidence, ledger);
  const gauges = [
    ...sample('svc_backup_configured', 1),
    ...sample('svc_backup_last_success_timestamp_seconds', seconds(ledger.success?.endMs)),
    ...sample('svc_backup_last_failure_timestamp_seconds', seconds(ledger.lastFailureMs)),
    ...sample('svc_backup_recovery_point_timestamp_seconds', seconds(recoveryPointOf(own, siblings, nowMs))),
    ...sample('svc_backup_last_size_bytes', sizeOf(ledger.success?.sizeBytes)),
    ...sample('svc_backup_last_duration_seconds', durationMs ? durationMs / 1000 : undefined),
    // Without a success there is nothing to retain, and "never succeeded" already says so.
    ...sample('svc_backup_retention_compliant', ledger.success && (isRetentionKept ? 1 : 0)),
    ...sample('svc_backup_offsite_last_success_timestamp_seconds', seconds(offsite?.newestMs)),
  ];
  if (integrity === 'ok' || integrity === 'corrupt')
    gauges.push({
      name: 'svc_backup_integrity_ok',
      labels: { ...labels, level: backup.integrity.level },
      value: integrity === 'ok' ? 1 : 0,
    });
  return gauges;
}

/** The integrity: the result of the verification of the newest artifact; any damage in the archived log is `corrupt`. */
function integrityOf({ artifacts, log }: Evidence, { verified }: Assessment['ledger']) {
  if (log && artifacts.some((artifact) => artifact.verified === 'corrupt')) return 'corrupt';
  const newest = artifacts.at(-1);
  return newest && (newest.verified ?? verified[keyOf(newest)]?.result);
}

function increasesOf(labels: ReturnType<typeof labelsOf>, { results }: Assessment): Sample[] {
  const counted = Object.entries(results) as [BackupResult, number][];
  const failed = counted.reduce((sum, [result, value]) => sum + (failures.has(result) ? value : 0), 0);
  const runs = counted.map(
    ([result, value]): Sample => ({
      name: 'svc_backup_runs_total',
      labels: { ...labels, result },
      value,
    }),
  );
  return failed > 0 ? [...runs, { name: 'svc_backup_failures_total', labels, value: failed }] : runs;
}

function detailsOf({ store, type }: BackupOptions, { artifacts, log }: Evidence, { ledger }: Assessment) {
  const newest = artifacts.at(-1);
  return {
    store,
    type,
    artifacts: artifacts.length,
    newest: newest && {
      id: newest.id,
      start: new Date(newest.startMs).toISOString(),
      bytes: sizeOf(newest.sizeBytes),
    },
    integrity: log ? integrityOfLog(log) : newest && integrityText(ledger.verified[keyOf(newest)], newest),
  };
}

/** The number of archived segments that were read, and what is wrong with the first ones that cannot be replayed. */
function integrityOfLog({ placed }: ArchivedSegments) {
  const wrong = placed.flatMap(({ segment: { name, content } }) => {
    const why = content?.fault ?? content?.unverified;
    return why === undefined ? [] : [[name, why] as const];
  });
  const read = placed.filter(({ segment }) => segment.content !== undefined).length;
  return { segments: placed.length, read, wrong: Object.fromEntries(wrong.slice(0, 10)) };
}

/** The answer of a verification without its content, which only the assessment needs; or why there is none. */
function integrityText(answer: VerifyAnswer | undefined, { verified }: Artifact) {
  if (answer === undefined) return verified ?? 'not verified yet';
  return { result: answer.result, msg: answer.msg };
}

/** The size of a backup in bytes; undefined for the value that stands for an unknown size. */
const sizeOf = (bytes: number | undefined) => (bytes === Number.MAX_SAFE_INTEGER ? undefined : bytes);

function verdictOf(
  { reason, msg }: Assessment,
  { missing, unreadable }: OffsiteStanding = { missing: [] },
  uncleared: readonly string[],
): Pick<Finding, 'reason' | 'msg'> {
  if (reason !== undefined) return { reason, msg };
  if (unreadable !== undefined) return { reason: 'evidence_unreadable', msg: `off-site: ${unreadable}` };
  if (missing.length > 0) {
    const more = missing.length > 3 ? ` and ${missing.length - 3} more` : '';
    return { reason: 'offsite_missing', msg: `no off-site copy of ${missing.slice(0, 3).join(', ')}${more}` };
  }
  if (uncleared.length > 0) {
    const names = uncleared.slice(0, 3).join(', ');
    return {
      reason: 'snapshot_not_cleared',
      msg: `snapshots with an off-site copy still on the node: ${names}`,
    };
  }
  return { msg };
}
