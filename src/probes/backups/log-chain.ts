import type { ArchivedLog, LogWriter } from '../stores/store-report.ts';
import type { WalRange } from './formats/manifest.ts';
import {
  archivedName,
  type BinlogPlace,
  type LogKind,
  type PlacedSegment,
  type Segment,
  type SegmentContent,
  segmentOfLsn,
  segmentPosition,
  usualWalSegmentBytes,
  walName,
  wholeUntil,
} from './formats/segments.ts';

/** A position at which a timeline left its parent (`00000002.history`). */
export interface Switch {
  timeline: number;
  /** A log sequence number such as `0/3000028`. */
  lsn: string;
}

/** A position up to which a server has written a timeline of PostgreSQL. */
export interface Written {
  timeline: number;
  position: string;
  /** When it had written up to there, ms since the epoch. */
  atMs: number;
  /** The system identifier of the server. */
  identity?: string;
}

/** An archive of log segments, with what was read from each. */
export interface ArchivedSegments {
  kind: LogKind;
  /** The segments in the order of the log. */
  placed: readonly PlacedSegment[];
  /** The parents of each timeline whose history is in the archive, oldest first. */
  histories: ReadonlyMap<number, readonly Switch[]>;
  walSegmentBytes?: number;
  /** What the server says about its log. */
  server?: ArchivedLog;
  /** How far the clock that sets the times in the log is ahead of this host's, ms. */
  aheadMs?: number;
  /** A database that the server leaves out of its binary log. */
  leavesOut?: string;
  /** How far the primary had written when it was last asked. */
  wrote?: Written;
  /** Whose transactions in a binary log belong to the store. */
  writer?: LogWriter;
  /** Whether the first answer of the store is still to come. */
  awaitsStore?: boolean;
}

/**
 * A file cannot be older than its content by more than this, which allows for two clocks that differ a little. If it is older,
 * the clock that set the times in the content was ahead by an unknown time.
 */
export const mostOlderMs = 2_000;

/** How far a log can be replayed. */
interface Replay {
  /** Names of the first and the last replayed segment. */
  first?: string;
  last?: string;
  /** The newest time that the replayed segments show, ms since the epoch. */
  newestMs?: number;
  /** When the file with the end of a base backup was last changed, ms since the epoch: the backup had begun before. */
  endedByMs?: number;
  /** What the store has committed later than this, ms since the epoch, may not be on the timelines that are replayed. */
  followedUntilMs?: number;
  /** Why the replay ends there; undefined at the end of the archive. */
  ends?: string;
  /** Whether the replay includes everything that the backup needs to be consistent. */
  isEnough: boolean;
}

const nothing = (ends: string): Replay => ({ ends, isEnough: false });

type KnownSegment = Pick<Segment, 'name' | 'content'> & Partial<Pick<Segment, 'endMs'>>;

/** A segment that can be replayed. */
interface Step extends KnownSegment {
  content: SegmentContent;
}

function replayOf(
  steps: readonly Step[],
  ends: string | undefined,
  isEnough: boolean,
  { aheadMs = 0, wholeMs }: { aheadMs?: number; wholeMs?: number },
): Replay {
  const isOlder = ({ content: { newestMs = 0 }, endMs = newestMs }: Step) =>
    newestMs - aheadMs > endMs + mostOlderMs;
  // If a segment is older than its content, the clock that set the times in it was ahead. In a binary log, a session may have set
  // a time (SET timestamp). The time at which a file was changed is no time of its content: the file may have been copied long
  // after it was closed.
  const shown = steps.findLast((step) => step.content.newestMs !== undefined && !isOlder(step));
  const shownMs = shown && shown.content.newestMs! - aheadMs;
  // Nothing in a file is newer than the file.
  const known = [shownMs && Math.min(shownMs, shown.endMs ?? shownMs), wholeMs].filter(
    (ms) => ms !== undefined,
  );
  return {
    first: steps[0]?.name,
    last: steps.at(-1)?.name,
    ...(known.length > 0 && { newestMs: Math.max(...known) }),
    ends,
    isEnough,
  };
}

/** Why a segment cannot be replayed; undefined if it can. */
function obstacleIn(name: string, content: SegmentContent | undefined): string | undefined {
  if (content === undefined) return `${name} has not been verified yet`;
  if (content.fault !== undefined) return `${name} is damaged: ${content.fault}`;
  return content.unverified === undefined ? undefined : `${name} cannot be verified: ${content.unverified}`;
}

/** The timelines that a restore follows, oldest first, each with the number of the segment in which it begins. */
interface Lineage {
  timelines: readonly { timeline: number; fromSegment: number }[];
  fault?: string;
}

/**
 * The lineage of a timeline. PostgreSQL follows the latest timeline by default: from the timeline of the backup on, as long as
 * the archive has the history of the next timeline. A backup that is not in the history of a timeline cannot be restored with it.
 */
export function lineageOf(
  base: WalRange,
  { histories, walSegmentBytes }: Pick<ArchivedSegments, 'histories' | 'walSegmentBytes'>,
  asked?: number,
): Lineage {
  let target = asked ?? base.timeline;
  while (asked === undefined && histories.has(target + 1)) target += 1;
  const parents = histories.get(target) ?? [];
  const numberOf = (at: string) => segmentOfLsn(at, walSegmentBytes);
  const timelines = [...parents.map(({ timeline }) => timeline), target].map((timeline, index) => ({
    timeline,
    fromSegment: index === 0 ? 0 : numberOf(parents[index - 1]!.lsn),
  }));
  if (parents.length === 0 && histories.has(target))
    return { timelines, fault: `${historyOf(target)} cannot be read here; a restore follows it` };
  if (target === base.timeline) return { timelines };
  const left = parents.find(({ timeline }) => timeline === base.timeline);
  if (left !== undefined && positionOf(left.lsn) >= positionOf(base.end)) return { timelines };
  const fault = `the archive has the history of timeline ${target}, to which the backup does not belong; take a new backup`;
  return { timelines, fault };
}

/**
 * Finds out whether what the store has written is on the timelines that a restore follows. It is not if another server was
 * promoted while the store goes on as before. As long as the store writes a timeline that a restore leaves, the answer is valid
 * up to the last poll only.
 */
function divergence(
  { histories, wrote, awaitsStore }: ArchivedSegments,
  { timelines }: Lineage,
  systemId: string | undefined,
): { fault?: string; untilMs?: number } {
  const { timeline } = timelines.at(-1)!;
  const parents = histories.get(timeline) ?? [];
  if (wrote === undefined)
    return parents.length > 0 && awaitsStore
      ? {
          fault: `a restore follows timeline ${timeline}, and the store has not been asked yet which one it writes`,
        }
      : {};
  if ((wrote.identity ?? systemId) !== (systemId ?? wrote.identity)) return {};
  const left = parents.find((each) => each.timeline === wrote.timeline);
  if (left === undefined) return {};
  if (positionOf(wrote.position) <= positionOf(left.lsn)) return { untilMs: wrote.atMs };
  const fault = `a restore leaves timeline ${left.timeline} at ${left.lsn} for timeline ${timeline}, and the store has written it up to ${wrote.position}: was another server promoted?`;
  return { fault };
}

const historyOf = (timeline: number) => `${timeline.toString(16).toUpperCase().padStart(8, '0')}.history`;

/** The position in the log that a text such as `0/3000028` names. */
export function positionOf(lsn: string): bigint {
  const [high = '0', low = '0'] = lsn.split('/');
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`);
}

/** The segment that contains the byte before a position. */
function segmentBefore(lsn: string, segmentBytes: number | undefined): number {
  const before = positionOf(lsn) - 1n;
  return segmentOfLsn(`${(before >> 32n).toString(16)}/${(before & 0xffffffffn).toString(16)}`, segmentBytes);
}

const keyOf = (timeline: number, number: number) => `${timeline} ${number}`;

/**
 * How far a base backup can be replayed: from the segment of its start through all segments that follow, along the timelines that
 * a restore follows. `own` are segments that the backup contains.
 */
export function replayWal(
  ranges: readonly WalRange[],
  archive: ArchivedSegments | undefined,
  own: Readonly<Record<string, SegmentContent>> = {},
  systemId?: string,
): Replay {
  const [base] = ranges;
  const until = ranges.at(-1);
  if (base === undefined || until === undefined) return nothing('the backup does not say which WAL it needs');
  const known: ArchivedSegments = archive ?? { kind: 'wal', placed: [], histories: new Map() };
  const bytes = known.walSegmentBytes ?? Object.values(own)[0]?.wal?.segmentBytes ?? usualWalSegmentBytes;
  const steps = new Map<string, KnownSegment>();
  // A restore reads a segment from the archive first, and from the backup if the archive lacks it.
  for (const segment of [
    ...known.placed.map(({ segment }): KnownSegment => segment),
    ...Object.entries(own).map(([name, content]): KnownSegment => ({ name, content })),
  ]) {
    const at = segmentPosition('wal', segment.name, 2 ** 32 / bytes);
    if (at && !steps.has(keyOf(at.timeline, at.number))) steps.set(keyOf(at.timeline, at.number), segment);
  }
  const lineage = lineageOf(until, { ...known, walSegmentBytes: bytes });
  const left = divergence(known, lineage, systemId);
  const fault = lineage.fault ?? left.fault;
  if (fault !== undefined) return nothing(fault);
  const [from, to] = [segmentOfLsn(base.start, bytes), segmentBefore(until.end, bytes)];
  const followed = followWal(from, lineage, { steps, bytes }, systemId);
  const wholeMs = wholeUntil(followed.steps.at(-1), known.server);
  const replay = replayOf(followed.steps, followed.ends, followed.next > to, {
    aheadMs: known.aheadMs,
    wholeMs,
  });
  return { ...replay, endedByMs: followed.steps[to - from]?.endMs, followedUntilMs: left.untilMs };
}

function followWal(
  from: number,
  { timelines }: Lineage,
  { steps: known, bytes }: { steps: ReadonlyMap<string, KnownSegment>; bytes: number },
  systemId: string | undefined,
): { steps: Step[]; next: number; ends?: string } {
  const steps: Step[] = [];
  let cluster = systemId;
  const last = Math.max(-1, ...[...known.keys()].map((key) => Number(key.split(' ')[1])));
  for (let number = from; ; number++) {
    const { timeline } = timelines.findLast(({ fromSegment }) => fromSegment <= number) ?? timelines[0]!;
    const found = known.get(keyOf(timeline, number));
    if (found === undefined) {
      const isAtEnd = number > last && steps.length > 0;
      const missing = `${walName(timeline, number, bytes)} is missing`;
      return { steps, next: number, ...(!isAtEnd && { ends: missing }) };
    }
    const obstacle = obstacleIn(found.name, found.content) ?? linkFault(steps.at(-1), found as Step, cluster);
    if (obstacle !== undefined) return { steps, next: number, ends: obstacle };
    steps.push(found as Step);
    cluster ??= found.content!.wal?.systemId;
  }
}

/**
 * The fault if a segment does not continue the segment before it. A record that begins in one of them and ends in the other must
 * have been read from both together.
 */
function linkFault(before: Step | undefined, step: Step, cluster: string | undefined): string | undefined {
  const { systemId } = step.content.wal ?? {};
  if (cluster !== undefined && systemId !== undefined && cluster !== systemId)
    return `${step.name} is of another server`;
  const goesOn = before?.content.wal?.remainder?.open !== undefined;
  const isRead = step.content.after === undefined || step.content.after === before?.name;
  return goesOn && !isRead ? `${step.name} has not been verified yet with the one before it` : undefined;
}

/**
 * How far a binary log can be replayed on a backup that was taken at a position in it. The backup had ended by `endMs`, ms since
 * the epoch, if that is known. The log is from the server from which the backup was taken. If that server is a replica, only the
 * transactions of the store show how far the log reaches.
 */
export function replayBinlog(
  at: BinlogPlace,
  { placed: all, server, leavesOut, aheadMs, writer }: ArchivedSegments,
  { endMs = Number.POSITIVE_INFINITY, isOfPrimary = true }: { endMs?: number; isOfPrimary?: boolean } = {},
): Replay {
  if (leavesOut !== undefined)
    return nothing(`the server leaves ${leavesOut} out of it (binlog_do_db, binlog_ignore_db)`);
  if (writer === undefined && !isOfPrimary)
    return nothing('it may be of a replica, and the store has not said which transactions are its own');
  const number = segmentPosition('binlog', at.file, 1)?.number;
  const prefix = prefixOf(at.file);
  const placed = all.filter(({ segment }) => prefixOf(archivedName(segment.name)) === prefix);
  if (!placed.some((each) => each.at.number === number))
    return nothing(`${at.file}, in which the backup was taken, is missing in the archive`);
  const steps: Step[] = [];
  const timed = createTimes(writer);
  let ends: string | undefined;
  for (const { segment, at: place } of placed) {
    const { name, content } = segment;
    const before = steps.at(-1);
    // The file is from before the backup, or is the same file again, compressed or not.
    if (place.number < number! + steps.length) continue;
    if (place.number !== number! + steps.length) ends = `the file after ${before!.name} is missing`;
    else ends = obstacleIn(name, content) ?? (before && seam(before, { name, content: content! }));
    if (ends !== undefined) break;
    steps.push({ name, content: timed(content!), endMs: segment.endMs });
    if (!content!.binlog?.skips) continue;
    ends = `${name} is of a replica, and lacks transactions of its source: their numbers have a gap`;
    break;
  }
  const [begin] = steps;
  if (begin === undefined) return nothing(ends!);
  if ((begin.content.bytes ?? 0) < at.position)
    return nothing(`${begin.name} ends before the backup was taken`);
  const stranger = strangerAt(at, begin, endMs + (aheadMs ?? 0));
  if (stranger !== undefined) return nothing(stranger);
  const wholeMs = ends === undefined ? wholeUntil(steps.at(-1), server) : undefined;
  return replayOf(steps, ends, true, { aheadMs, wholeMs });
}

/**
 * Returns a function that takes the files of a log in their order, and gives each the newest time up to which it has all
 * transactions of the store. The log of another server has the transactions that this server has received: in each domain, all
 * transactions up to the newest.
 */
function createTimes(writer: LogWriter | undefined): (content: SegmentContent) => SegmentContent {
  const newest = new Map<string, number>();
  return (content) => {
    const { owner, committedMs = {} } = content.binlog ?? {};
    if (writer === undefined || writer === 'cluster' || owner === writer) return content;
    for (const [domain, ms] of Object.entries(committedMs[writer] ?? {})) newest.set(domain, ms);
    return { ...content, newestMs: newest.size === 0 ? undefined : Math.min(...newest.values()) };
  };
}

/** The names of a log's files without their numbers: a directory may contain the files of several logs. */
const prefixOf = (name: string): string => name.replace(/\.\d+$/, '');

/** Why the backup was not taken in this file: the file belongs to another server, or to a log that was reset. */
function strangerAt(
  { position, gtids }: BinlogPlace,
  { name, content }: Step,
  endMs: number,
): string | undefined {
  const { places, begunMs = 0 } = content.binlog ?? {};
  const found = places?.[position];
  if (found === undefined) return `${name} has not been verified yet at the position of the backup`;
  // Before its first transaction, no position of MariaDB distinguishes a log from the log before the reset.
  if (begunMs > endMs + mostOlderMs) return `${name} was begun after the backup: the log was reset since`;
  const isOther = found === null || (gtids !== undefined && content.binlog?.fromGtids !== undefined);
  if (!isOther || gtids === found) return undefined;
  return `${name} is of another server, or the log was reset since: the backup was not taken in it`;
}

/** What is missing between two files. A copy that was made while the server still wrote the file looks whole. */
function seam(before: Step, next: Step): string | undefined {
  const { isClosed, toGtids } = before.content.binlog ?? {};
  const { fromGtids } = next.content.binlog ?? {};
  const isKnown = toGtids !== undefined && fromGtids !== undefined;
  if (isKnown ? toGtids === fromGtids : isClosed) return undefined;
  return `${before.name} is not complete: copy it again, now that the server has closed it`;
}

/**
 * What is missing between the segments, as text for people; undefined for a log without a gap. Without histories, a new timeline
 * may begin in the segment in which the timeline before it ends, or in the next segment.
 */
export function gapIn({
  placed,
  histories,
  walSegmentBytes,
}: Omit<ArchivedSegments, 'histories'> & Partial<Pick<ArchivedSegments, 'histories'>>): string | undefined {
  for (const [index, { segment, at }] of placed.entries()) {
    const before = placed[index - 1];
    if (before === undefined) continue;
    const between = `segments are missing between ${before.segment.name} and ${segment.name}`;
    const isSame = before.at.timeline === at.timeline;
    if (isSame || histories === undefined) {
      const isNext = at.number === before.at.number + 1 || at.number === before.at.number;
      if (!isNext) return between;
      continue;
    }
    const left = histories.get(at.timeline)?.at(-1);
    const fault = histories.has(at.timeline) ? 'cannot be read' : 'is missing';
    if (left === undefined)
      return `${historyOf(at.timeline)} ${fault}, which says where ${segment.name} goes on from`;
    if (at.number > segmentOfLsn(left.lsn, walSegmentBytes)) return between;
  }
  return undefined;
}
