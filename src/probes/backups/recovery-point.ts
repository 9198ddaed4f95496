import type { BackupType, RecoveryFailureReason } from '../../core/reasons.ts';
import { formatDuration } from '../../core/text-formats.ts';
import type { Assessment } from './assessment.ts';
import type { BackupOptions } from './block.ts';
import type { Artifact, Evidence } from './evidence.ts';
import { momentOf } from './formats/wall-time.ts';
import { buildsUpon, continues } from './incremental-parent.ts';
import type { RunRecord } from './journal.ts';
import { type ArchivedSegments, mostOlderMs, replayBinlog, replayWal } from './log-chain.ts';

/**
 * Turns evidence into a recovery point: the moment before which everything that was committed can be restored. It is known only
 * from content (what a dump, a manifest, a log or a tool's report says), and only if every file that the restore needs is there.
 * If any of these is missing, the recovery point is unknown, and an unknown recovery point never counts as a good one.
 */
type RecoveryPoint = KnownPoint | UnknownPoint;

interface KnownPoint {
  /** The recovery point, ms since the epoch. */
  ms: number;
  /** Why the recovery point is probably later, and what would show that. */
  note?: string;
}

interface UnknownPoint {
  /** What is missing, and what would make the recovery point known. */
  unknown: string;
}

const isKnown = (point: RecoveryPoint): point is KnownPoint => 'ms' in point;

/** One backup of a database, with its last assessment. */
export interface Standing {
  options: BackupOptions;
  /** The last assessment; missing if the evidence could not be read. */
  assessed?: { evidence: Evidence; assessment: Assessment };
  /** Why the evidence could not be read. */
  unreadable?: string;
}

/** One step of the evidence for a recovery point, for people; part of `/api/status`. */
interface ChainLink {
  backup: string;
  type: BackupType;
  what: string;
  /** The time that the step reaches, ms since the epoch; undefined if only later steps show that. */
  recoveryPointMs?: number;
}

export interface Chain {
  recoveryPointMs: number;
  /** Why the recovery point is probably later. */
  note?: string;
  links: readonly ChainLink[];
}

/** A time that is further ahead than this is from a wrong clock. */
const mostAheadMs = 10_000;
/** The recovery point that a backup shows by itself, without a log. */
export function pointOf(artifact: Artifact, jobs: readonly RunRecord[], nowMs: number): RecoveryPoint {
  const { id, endMs, placedMs = endMs } = artifact;
  const begun = ofPrimary(beginningOf(artifact, jobs), artifact);
  if (!isKnown(begun)) return { unknown: `${id}: ${begun.unknown}` };
  const { ms, note } = begun;
  if (ms > nowMs + mostAheadMs)
    return { unknown: `${id} states a start in the future; compare the clocks and time zones` };
  if (ms > Math.min(endMs, placedMs) + mostOlderMs)
    return { unknown: `${id} is older than its content; compare the clocks, and source.files.timeZone` };
  return { ms: Math.min(ms, nowMs), ...(note !== undefined && { note: `${id}: ${note}` }) };
}

const zoneUnknown = 'its time has no zone; set source.files.timeZone to the zone of the host that makes it';

/** Why nothing is known about a restore of this content, with a log or without. */
const doubtOf = (content: Artifact['content']) => content?.unread ?? content?.lacks;

/** When a backup began according to its content. */
function beginningOf({ content, timeZone }: Artifact, jobs: readonly RunRecord[]): RecoveryPoint {
  const { startMs, startWall, endWall, unknown = 'it does not say when it began' } = content ?? {};
  const doubt = doubtOf(content);
  if (doubt !== undefined) return { unknown: doubt };
  if (startMs !== undefined) return { ms: startMs };
  const wall = startWall ?? endWall;
  const ms = wall && momentOf(wall, timeZone);
  if (wall !== undefined && ms === undefined)
    return { unknown: `it states a time that ${timeZone} does not have; set source.files.timeZone` };
  if (startWall !== undefined)
    return {
      ms: ms!,
      ...(timeZone === undefined && { note: `${zoneUnknown}; the backup may be up to 26 hours newer` }),
    };
  if (endWall === undefined) return { unknown };
  if (timeZone === undefined) return { unknown: zoneUnknown };
  const job = startOfJob(ms!, jobs);
  return job === undefined ? { unknown } : { ms: job };
}

/**
 * The recovery point if the backup is from the primary. A dump of a replica lacks what the replica had not received yet. It does
 * not state how much that is, so its time is not used.
 */
function ofPrimary(begun: RecoveryPoint, { takenFrom = 'primary' }: Artifact): RecoveryPoint {
  if (!isKnown(begun) || takenFrom === 'primary') return begun;
  const unknown =
    takenFrom === 'replica'
      ? 'it is from a replica (source.files.takenFrom), and does not state the lag of the replica; take it from the primary'
      : 'it does not say whether its server is the primary or a replica that lags; set source.files.takenFrom: primary if each one is taken from the primary';
  return { unknown };
}

/** The start of the run during which a dump ended. `endMs` is from the dump, in whole seconds. */
function startOfJob(endMs: number, jobs: readonly RunRecord[]): number | undefined {
  return jobs.findLast(
    (run) => run.status === 0 && run.endMs !== undefined && run.startMs < endMs + 1000 && endMs <= run.endMs,
  )?.startMs;
}

/** A full backup, the incremental backups upon it, and the log that follows them. */
interface Reach {
  point: RecoveryPoint;
  links: readonly ChainLink[];
}

interface Recovery {
  chain?: Chain;
  /** Why no chain reaches a known point. */
  unknown?: { reason: RecoveryFailureReason; msg: string };
}

/** The chain that reaches furthest, from a verified full backup through incremental backups and the log. */
export function recoveryOf(standings: readonly Standing[], nowMs: number): Recovery {
  const reaches = of(standings, 'full').flatMap(({ options, assessed }) =>
    (assessed?.assessment.usable ?? []).flatMap((full) =>
      basesOn(options.name, onThisClock(full, assessed?.evidence.aheadMs), standings).map((bases) => ({
        ...reachOf(bases, standings, nowMs),
        method: full.method,
      })),
    ),
  );
  const aheadMs = Math.max(0, ...standings.map(({ assessed }) => assessed?.evidence.aheadMs ?? 0));
  const ofClock =
    aheadMs > 0
      ? `the clock of the store is ${formatDuration(aheadMs)} ahead of this host's clock, so the recovery point is earlier by that time`
      : undefined;
  const known = reaches.flatMap(({ point, links, method }) => {
    if (!isKnown(point)) return [];
    // The time of a dump is from the clock of the host on which its program ran.
    const isOfStore = method === 'postgres_base' || links.some(({ type }) => type === 'log');
    return [{ recoveryPointMs: point.ms, note: point.note ?? (isOfStore ? ofClock : undefined), links }];
  });
  const furthest = known.sort((one, other) => one.recoveryPointMs - other.recoveryPointMs).at(-1);
  if (furthest) return { chain: furthest };
  const newest = reaches.at(-1)?.point;
  if (newest && !isKnown(newest))
    return {
      unknown: { reason: 'recovery_point_unknown', msg: `the recovery point is unknown: ${newest.unknown}` },
    };
  return { unknown: withoutFull(standings) };
}

const of = (standings: readonly Standing[], type: BackupType) =>
  standings.filter(({ options }) => options.type === type);

interface Base {
  backup: string;
  type: BackupType;
  artifact: Artifact;
  jobs: readonly RunRecord[];
}

const jobsOf = (standings: readonly Standing[], backup: string) =>
  standings.find(({ options }) => options.name === backup)?.assessed?.evidence.jobs ?? [];

/** Corrects the time in the label of a base backup, which is from the server's clock, by the difference of the clocks. */
function onThisClock(artifact: Artifact, aheadMs = 0): Artifact {
  const { method, content } = artifact;
  if (aheadMs === 0 || method !== 'postgres_base' || content?.startMs === undefined) return artifact;
  return { ...artifact, content: { ...content, startMs: content.startMs - aheadMs } };
}

/** The full backup alone, and together with each number of incremental backups that continue it. */
function basesOn(backup: string, full: Artifact, standings: readonly Standing[]): Base[][] {
  const jobs = jobsOf(standings, backup);
  const chains: Base[][] = [[{ backup, type: 'full', artifact: full, jobs }]];
  for (const { options, assessed } of of(standings, 'incremental')) {
    for (const artifact of assessed?.assessment.usable ?? []) {
      // A differential backup builds upon the full backup, whatever incremental backups are between them.
      const upon = chains.findLast((bases) => {
        const before = bases.map((base) => base.artifact);
        return buildsUpon(artifact, before.at(-1)!) && continues(artifact, before);
      });
      const jobs = assessed?.evidence.jobs ?? [];
      if (upon) chains.push([...upon, { backup: options.name, type: 'incremental', artifact, jobs }]);
    }
  }
  return chains;
}

function reachOf(bases: readonly Base[], standings: readonly Standing[], nowMs: number): Reach {
  const top = bases.find(({ artifact }) => doubtOf(artifact.content) !== undefined) ?? bases.at(-1)!;
  const own = pointOf(top.artifact, top.jobs, nowMs);
  const links = bases.map(({ backup, type, artifact, jobs }): ChainLink => {
    const point = pointOf(artifact, jobs, nowMs);
    return { backup, type, what: artifact.id, ...(isKnown(point) && { recoveryPointMs: point.ms }) };
  });
  const logs = of(standings, 'log').flatMap(({ options: { name }, assessed }) =>
    assessed?.evidence.log ? [{ name, log: assessed.evidence.log }] : [],
  );
  if (doubtOf(top.artifact.content) !== undefined) return { point: own, links };
  if (top.artifact.method === 'postgres_base')
    return throughWal({ point: own, links }, top.artifact, logs, nowMs);
  return throughBinlog({ point: own, links }, top.artifact, logs, nowMs);
}

interface NamedLog {
  name: string;
  log: ArchivedSegments;
}

/** Extends a chain by WAL. A base backup is useless without the WAL that was written while it was taken. */
function throughWal(base: Reach, artifact: Artifact, logs: readonly NamedLog[], nowMs: number): Reach {
  const { id, wal = [], content, hasLog, recoverableToMs } = artifact;
  const archives: (NamedLog | undefined)[] = logs.filter(({ log }) => log.kind === 'wal');
  let obstacle = `${id} needs WAL, which no entry of type log observes; add one, or take it with --wal-method=stream`;
  let best: Reach | undefined;
  for (const archive of archives.length > 0 ? archives : [undefined]) {
    const replay = replayWal(wal, archive?.log, content?.wal, content?.systemId);
    const { endedByMs } = replay;
    // A new cluster writes segments with the same names: the segments of the previous cluster are older than the backup.
    const isOfAnother =
      content?.systemId === undefined &&
      endedByMs !== undefined &&
      artifact.startMs > endedByMs + mostOlderMs;
    if (replay.isEnough && isOfAnother) {
      obstacle = `${id} cannot be restored: the WAL in the archive was there before it began, and is of another server`;
    } else if (replay.isEnough) {
      const reach = until(
        replay.followedUntilMs,
        withLog(begunBy(id, base, endedByMs), archive?.name, replay, nowMs),
      );
      if (!best || later(reach.point, best.point)) best = reach;
    } else if (archive !== undefined || content?.wal !== undefined) {
      obstacle = `${id} cannot be restored: ${replay.ends ?? 'the archive ends before the backup does'}`;
    }
  }
  if (best) return best;
  if (!hasLog || archives.length > 0) return { ...base, point: { unknown: obstacle } };
  return withPoint(base, recoverableToMs, nowMs);
}

/** The chain, in which each point that is later than a given time is replaced by that time. */
function until(latestMs: number | undefined, { point, links }: Reach): Reach {
  if (latestMs === undefined) return { point, links };
  const cut = ({ recoveryPointMs: ms, ...link }: ChainLink): ChainLink => ({
    ...link,
    ...(ms !== undefined && { recoveryPointMs: Math.min(ms, latestMs) }),
  });
  return {
    point: isKnown(point) ? { ...point, ms: Math.min(point.ms, latestMs) } : point,
    links: links.map(cut),
  };
}

/**
 * The chain of a backup that had begun before a given time. The time that a tool states may be from a clock that was ahead: a
 * start after the given time does not count.
 */
function begunBy(id: string, { point, links }: Reach, latestMs: number | undefined): Reach {
  if (latestMs === undefined || !isKnown(point) || point.ms <= latestMs + mostOlderMs)
    return { point, links };
  const unknown = `${id} states a start that is later than its WAL was archived; compare the clocks`;
  return { point: { unknown }, links: links.map((link) => ({ ...link, recoveryPointMs: undefined })) };
}

/** Extends a chain by what was written since a dump at a known position in the binary log. */
function throughBinlog(base: Reach, artifact: Artifact, logs: readonly NamedLog[], nowMs: number): Reach {
  const { content: { binlog: at, withoutLog } = {}, takenFrom = 'primary' } = artifact;
  let best = base;
  let obstacle = withoutLog;
  for (const { name, log } of at === undefined || withoutLog !== undefined ? [] : logs) {
    if (log.kind !== 'binlog') continue;
    const replay = replayBinlog(at!, log, { endMs: artifact.endMs, isOfPrimary: takenFrom === 'primary' });
    const fault = replay.isEnough ? timeFault(replay) : replay.ends;
    if (fault !== undefined) obstacle ??= `the log ${name} does not count: ${fault}`;
    const reach = replay.isEnough ? withLog(base, name, replay, nowMs) : base;
    if (later(reach.point, best.point)) best = reach;
  }
  if (best === base && obstacle !== undefined)
    best = {
      ...base,
      point: isKnown(base.point)
        ? { note: obstacle, ...base.point }
        : { unknown: `${base.point.unknown}; ${obstacle}` },
    };
  return withPoint(best, artifact.recoverableToMs, nowMs);
}

const timeFault = ({ newestMs }: ReturnType<typeof replayBinlog>) =>
  newestMs === undefined ? 'it states no time before its files were changed; compare the clocks' : undefined;

const later = (one: RecoveryPoint, other: RecoveryPoint) =>
  isKnown(one) && (!isKnown(other) || one.ms >= other.ms);

/** The chain with the newer of the times that the backup and the log show. */
function withPoint({ point, links }: Reach, ms: number | undefined, nowMs: number): Reach {
  if (ms === undefined || ms > nowMs + mostAheadMs) return { point, links };
  const until = Math.min(ms, nowMs);
  return { point: isKnown(point) && point.ms >= until ? point : { ms: until }, links };
}

function withLog(
  base: Reach,
  backup: string | undefined,
  { first, last, newestMs }: ReturnType<typeof replayWal>,
  nowMs: number,
): Reach {
  const reached = withPoint(base, newestMs, nowMs);
  if (backup === undefined || !isKnown(reached.point)) return reached;
  const what = `${first} to ${last}`;
  return {
    ...reached,
    links: [...base.links, { backup, type: 'log', what, recoveryPointMs: reached.point.ms }],
  };
}

/** Why there is no full backup to begin with. */
function withoutFull(standings: readonly Standing[]): NonNullable<Recovery['unknown']> {
  const unverified = of(standings, 'full').some(
    ({ assessed }) => (assessed?.assessment.unverified.length ?? 0) > 0,
  );
  if (unverified) {
    const msg =
      'no full backup is verified; set integrity.level (source.command.verify for a tool), or see why it cannot be verified';
    return { reason: 'unverified', msg };
  }
  if (standings.some(({ assessed }) => (assessed?.evidence.log?.placed.length ?? 0) > 0))
    return { reason: 'chain_broken', msg: 'there is a log, but no verified full backup before it' };
  const missing = standings.find(({ assessed }) => assessed?.evidence.missingDirectory !== undefined);
  const msg = missing
    ? `${missing.assessed!.evidence.missingDirectory} does not exist`
    : 'there is no full backup';
  return { reason: 'no_backup', msg };
}

/**
 * The time that one backup reaches, for its gauge; undefined if it is unknown or the backup does not count. A full backup reaches
 * its own start; other backups reach the end of the chain through them.
 */
export function recoveryPointOf(
  standing: Standing,
  siblings: readonly Standing[],
  nowMs: number,
): number | undefined {
  const { options, assessed } = standing;
  if (!assessed) return undefined;
  if (options.type === 'config') return assessed.assessment.ledger.success?.endMs;
  const others = siblings.filter(
    (other) =>
      other.options.name !== options.name &&
      (other.options.type === 'full' ? options.type !== 'full' : other.options.type === 'log'),
  );
  const links = recoveryOf([standing, ...others], nowMs).chain?.links ?? [];
  return links.findLast(({ backup }) => backup === options.name)?.recoveryPointMs;
}
