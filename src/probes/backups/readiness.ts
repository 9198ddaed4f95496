import type { BackupType, RecoveryFailureReason } from '../../core/reasons.ts';
import { formatDuration } from '../../core/text-formats.ts';
import { type Assessment, graceMs } from './assessment.ts';
import type { BackupOptions } from './block.ts';
import type { Artifact, Evidence } from './evidence.ts';
import { runFromBaseBackup, runFromDump, type SegmentRun } from './segments.ts';

/** One backup of a database as last assessed. */
export interface Standing {
  options: BackupOptions;
  /** None when its evidence could not be read. */
  assessed?: { evidence: Evidence; assessment: Assessment };
  /** Why it could not be read. */
  unreadable?: string;
}

/** One step of the evidence for a recovery point, for people: `/api/status`. */
export interface ChainLink {
  backup: string;
  type: BackupType;
  what: string;
  recoveryPointMs: number;
}

export interface Chain {
  recoveryPointMs: number;
  links: readonly ChainLink[];
}

/** A full backup at the end of a chain, and everything that can be restored on top of it. */
interface Reach extends Chain {
  /** The full backup, and the incremental ones upon it, oldest first. */
  bases: readonly Artifact[];
}

/**
 * How far a database can be restored: from each verified full backup through the incrementals and the log that
 * continue it without a gap. An incremental without its full, and a log with a gap before it, do not count.
 * Undefined when there is no verified full backup.
 */
export function chainOf(standings: readonly Standing[]): Chain | undefined {
  // Where the log is observed itself, its gaps count, which the range that a tool reports does not show.
  const hasLog = of(standings, 'log').length > 0;
  const pointOf = ({ startMs, recoverableToMs = 0 }: Artifact) =>
    hasLog ? startMs : Math.max(startMs, recoverableToMs);
  const fulls = of(standings, 'full').flatMap(({ options, assessed }) =>
    (assessed?.assessment.usable ?? []).map((artifact) => reachOf(options, artifact, pointOf(artifact))),
  );
  const reaches = fulls.map((reach) => withLog(withIncrementals(reach, standings, pointOf), standings));
  return reaches.sort((one, other) => one.recoveryPointMs - other.recoveryPointMs).at(-1);
}

const of = (standings: readonly Standing[], type: BackupType) =>
  standings.filter(({ options }) => options.type === type);

function reachOf({ name }: BackupOptions, full: Artifact, recoveryPointMs: number): Reach {
  return {
    bases: [full],
    recoveryPointMs,
    links: [{ backup: name, type: 'full', what: full.id, recoveryPointMs }],
  };
}

function on(reach: Reach, link: ChainLink): Reach {
  return {
    ...reach,
    recoveryPointMs: Math.max(reach.recoveryPointMs, link.recoveryPointMs),
    links: [...reach.links, link],
  };
}

function withIncrementals(
  reach: Reach,
  standings: readonly Standing[],
  pointOf: (artifact: Artifact) => number,
): Reach {
  let reached = reach;
  for (const { options, assessed } of of(standings, 'incremental')) {
    for (const artifact of assessed?.assessment.usable ?? []) {
      // A differential backup builds upon the full one, whatever incremental ones lie between them.
      if (!reached.bases.some((base) => buildsUpon(artifact, base))) continue;
      const recoveryPointMs = pointOf(artifact);
      const link = { backup: options.name, type: 'incremental', what: artifact.id, recoveryPointMs } as const;
      reached = { ...on(reached, link), bases: [...reached.bases, artifact] };
    }
  }
  return reached;
}

/**
 * Where the tool names the parent or writes log sequence numbers, they decide; otherwise no backup is known to
 * fit.
 */
function buildsUpon(artifact: Artifact, parent: Artifact): boolean {
  if (artifact.parent !== undefined) return artifact.parent === parent.id;
  if (artifact.lsn && parent.lsn) return artifact.lsn.from === parent.lsn.to;
  if (artifact.method !== 'flush') return false;
  // The files of a flush are those written since the flush before it, or since a snapshot after that.
  const { sinceMs = 0 } = artifact;
  if (parent.method === 'flush') return parent.startMs === sinceMs;
  return parent.method === 'snapshot' && parent.startMs >= sinceMs && parent.startMs <= artifact.startMs;
}

function withLog(reach: Reach, standings: readonly Standing[]): Reach {
  let reached = reach;
  for (const { options, assessed } of of(standings, 'log')) {
    const runs = assessed?.evidence.runs ?? [];
    // Segments from before an incremental backup may have been removed.
    const run = reach.bases.map((base) => runFrom(base, runs)).findLast((each) => each !== undefined);
    if (!run) continue;
    const what = `${run.first} to ${run.last}`;
    reached = on(reached, { backup: options.name, type: 'log', what, recoveryPointMs: run.lastEndMs });
  }
  return reached;
}

function runFrom(base: Artifact, runs: readonly SegmentRun[]): SegmentRun | undefined {
  if (base.method === 'postgres_base') return runFromBaseBackup(runs, base.wal ?? []);
  // A dump of PostgreSQL has no place in the write-ahead log: nothing can be replayed on top of it.
  if (base.method === 'mysql_dump' || base.method === 'mysql_physical') return runFromDump(runs, base);
  return undefined;
}

/** The newest drill of a procedure that restores a database. */
export interface Drill {
  procedure: string;
  endMs: number;
  durationMs: number;
}

export interface Readiness {
  /** Undefined while evidence cannot be read. */
  isReady?: boolean;
  reason?: RecoveryFailureReason;
  msg: string;
  chain?: Chain;
  /** When the recovery point becomes too old, ms since the epoch. */
  untilMs?: number;
}

/**
 * Whether a database could be recovered within its objectives now: the recovery point that a verified, gap-free chain
 * reaches is within the tightest objective plus grace, and the newest drill took no longer than the tightest
 * recovery time objective. Without a drill the recovery time is not assessed; a separate check shows that.
 */
export function readinessOf(
  standings: readonly Standing[],
  drill: Drill | undefined,
  nowMs: number,
): Readiness {
  const databaseBackups = standings.filter(({ options }) => options.type !== 'config');
  const unreadable = databaseBackups.find(({ assessed }) => assessed === undefined);
  if (unreadable) {
    const why = unreadable.unreadable ?? 'not read yet';
    return { reason: 'evidence_unreadable', msg: `backup ${unreadable.options.name}: ${why}` };
  }
  const chain = chainOf(databaseBackups);
  if (!chain) return notReachable(databaseBackups);
  const [tightest] = databaseBackups
    .map(({ options, assessed }) => ({
      options,
      limitMs: options.objectives.rpoMs + graceMs(options, assessed!.assessment.ledger),
    }))
    .sort((one, other) => one.limitMs - other.limitMs);
  const ageMs = nowMs - chain.recoveryPointMs;
  if (ageMs > tightest!.limitMs) {
    const { name, objectives } = tightest!.options;
    const msg = `${formatDuration(ageMs)} would be lost; the objective of ${name} is ${formatDuration(objectives.rpoMs)}`;
    return { isReady: false, reason: 'recovery_point_too_old', msg, chain };
  }
  const rtoMs = Math.min(...databaseBackups.map(({ options }) => options.objectives.rtoMs));
  if (drill && drill.durationMs > rtoMs) {
    const msg = `the last restore took ${formatDuration(drill.durationMs)}; the objective is ${formatDuration(rtoMs)}`;
    return { isReady: false, reason: 'drill_too_slow', msg, chain };
  }
  const untilMs = chain.recoveryPointMs + tightest!.limitMs;
  return {
    isReady: true,
    msg: `at most ${formatDuration(Math.max(0, ageMs))} would be lost`,
    chain,
    untilMs,
  };
}

function notReachable(standings: readonly Standing[]): Readiness {
  const fulls = of(standings, 'full');
  const unverified = fulls.some(({ assessed }) => (assessed?.assessment.unverified.length ?? 0) > 0);
  if (unverified) {
    const msg =
      'no full backup is verified; set integrity.level (source.command.verify for a tool), or see why it cannot be verified';
    return { isReady: false, reason: 'unverified', msg };
  }
  const hasParts = standings.some(({ assessed }) => (assessed?.evidence.runs?.length ?? 0) > 0);
  const missing = standings.find(({ assessed }) => assessed?.evidence.missingDirectory !== undefined);
  const none = missing
    ? `${missing.assessed!.evidence.missingDirectory} does not exist`
    : 'there is no full backup';
  const msg = hasParts ? 'there is a log, but no verified full backup before it' : none;
  return { isReady: false, reason: hasParts ? 'chain_broken' : 'no_backup', msg };
}

/**
 * How far one backup reaches by itself; undefined if it does not count. A full backup reaches to its own start,
 * others to the end of the chain through them.
 */
export function recoveryPointOf(standing: Standing, siblings: readonly Standing[]): number | undefined {
  const { options, assessed } = standing;
  if (!assessed) return undefined;
  if (options.type === 'config') return assessed.assessment.ledger.success?.endMs;
  const chain = chainOf(
    options.type === 'full'
      ? [standing]
      : siblings.filter((other) => other.options.type === 'full' || other.options.name === options.name),
  );
  const links = chain?.links.filter(({ backup }) => backup === options.name) ?? [];
  return links.at(-1)?.recoveryPointMs;
}
