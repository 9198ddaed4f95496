import { join } from 'node:path';
import type { ArchivedLog } from '../stores/store-report.ts';
import type { BackupSource } from './block.ts';
import { type Artifact, type Evidence, noEvidence, type VerifyAnswer } from './evidence.ts';
import { listBackupDirectory, statOf, temporaryName } from './files.ts';
import {
  archivedName,
  comparePositions,
  type LogKind,
  type PlacedSegment,
  placeSegments,
  plainWalSegmentBytes,
  type Segment,
  type SegmentRun,
  type SegmentsToVerify,
  segmentRuns,
  type VerifiedLog,
  walFolder,
} from './segments.ts';

type SegmentsSource = BackupSource & { kind: 'segments' };

export interface LogEvidence extends Evidence {
  log: VerifiedLog;
}

export interface LogReading {
  /** From the probe of the store: the log of an idle store is complete up to the poll that found it archived. */
  server?: ArchivedLog;
  before?: VerifiedLog;
  /** Verifies segments of the directory; undefined while there is no answer yet, to these or to those before. */
  verify?: (
    segments: SegmentsToVerify,
  ) => Promise<{ names: readonly string[]; answer: VerifyAnswer } | undefined>;
}

/** Number of segments that are verified together. */
const batchSize = 256;

const notVerified: VerifiedLog = { result: 'unknown', msg: 'not verified', damaged: {} };

/**
 * Archived segments of a write-ahead or binary log. One that is damaged breaks the log as one that is missing does,
 * and is an artifact of its own, so that it is counted once.
 */
export async function readSegments(
  source: SegmentsSource,
  nowMs: number,
  { server, before = notVerified, verify }: LogReading = {},
): Promise<LogEvidence> {
  const listed = await listSegments(source, nowMs);
  if (listed === undefined) return { ...noEvidence(source.directory), log: before };
  const segmentBytes =
    source.log === 'wal' ? await segmentBytesOf(source.directory, listed, before.segmentBytes) : undefined;
  const placed = placeSegments(source.log, listed, segmentBytes);
  const verified = await verifiedLog(source.log, placed, before, verify);
  const evidence = evidenceOf(
    source.log,
    listed,
    segmentBytes ? { ...verified, segmentBytes } : verified,
    server,
  );
  return { ...evidence, segments: placed.map(({ segment }) => segment) };
}

/**
 * The size of a cluster's segments, which is set by initdb: that of a plain file, or what the first page of a
 * compressed one states. Undefined where neither is known, as of files that cannot be unpacked here.
 */
async function segmentBytesOf(
  directory: string,
  segments: readonly Segment[],
  before: number | undefined,
): Promise<number | undefined> {
  const known = plainWalSegmentBytes(segments) ?? before;
  if (known !== undefined) return known;
  const { walSegmentBytesIn } = await import('./log-segments.ts');
  for (const { name } of segments.slice(0, 3)) {
    const found = await walSegmentBytesIn(join(directory, name)).catch(() => undefined);
    if (found !== undefined) return found;
  }
  return undefined;
}

async function listSegments(
  { directory, log, settleMs }: SegmentsSource,
  nowMs: number,
): Promise<Segment[] | undefined> {
  const names = await listBackupDirectory(directory);
  if (names === undefined) return undefined;
  const folders = log === 'wal' ? names.filter((name) => walFolder.test(name)) : [];
  const below = folders.map(async (folder) => {
    const inside = (await listBackupDirectory(join(directory, folder))) ?? [];
    return inside.map((name) => join(folder, name));
  });
  const segments: Segment[] = [];
  for (const name of [names, ...(await Promise.all(below))].flat()) {
    if (temporaryName.test(name)) continue;
    const stats = await statOf(join(directory, name));
    if (!stats?.isFile() || nowMs - stats.mtimeMs < settleMs) continue;
    segments.push({ name, endMs: stats.mtimeMs, sizeBytes: stats.size });
  }
  return segments;
}

/** Requests the verification of the next segments that are new, have grown or were replaced. */
async function verifiedLog(
  log: LogKind,
  placed: readonly PlacedSegment[],
  before: VerifiedLog,
  verify: LogReading['verify'],
): Promise<VerifiedLog> {
  const byName = new Map(placed.map((each) => [each.segment.name, each.segment]));
  const damaged = Object.fromEntries(
    Object.entries(before.damaged).filter(([name, { sizeBytes, endMs }]) => {
      const there = byName.get(name);
      return there?.sizeBytes === sizeBytes && there.endMs === endMs;
    }),
  );
  const isDue = ({ segment, at }: PlacedSegment) => {
    const past = before.to ? comparePositions(at, before.to) : 1;
    const isReplaced = before.damaged[segment.name] !== undefined && damaged[segment.name] === undefined;
    return past > 0 || isReplaced || segment.endMs > before.to!.endMs;
  };
  const first = placed.findIndex(isDue);
  const last = placed.at(-1);
  if (verify === undefined || first < 0 || last === undefined) return { ...before, damaged };
  const due = placed.slice(first).filter(isDue).slice(0, batchSize);
  const answered = await verify({
    log,
    names: due.map(({ segment }) => segment.name),
    before: placed[first - 1]?.segment.name,
    newest: last.segment.name,
  });
  if (answered === undefined || answered.answer.isFailure) return { ...before, damaged };
  const { names, answer } = answered;
  const found = Object.entries(answer.damaged ?? {}).flatMap(([name, msg]) => {
    const there = byName.get(name);
    return there ? [[name, { sizeBytes: there.sizeBytes, endMs: there.endMs, msg }] as const] : [];
  });
  const verified = placed.filter(({ segment }) => names.includes(segment.name));
  const furthest = verified.at(-1)?.at;
  const isFurther = furthest && (!before.to || comparePositions(furthest, before.to) >= 0);
  const endMs = Math.max(before.to?.endMs ?? 0, ...verified.map(({ segment }) => segment.endMs));
  const to = isFurther ? furthest : before.to;
  return {
    ...(to && { to: { ...to, endMs } }),
    result: answer.result,
    msg: answer.msg,
    damaged: { ...damaged, ...Object.fromEntries(found) },
  };
}

function evidenceOf(
  log: LogKind,
  listed: readonly Segment[],
  verified: VerifiedLog,
  server: ArchivedLog | undefined,
): LogEvidence {
  const runs = segmentRuns(
    log,
    listed.filter(({ name }) => verified.damaged[name] === undefined),
    verified.segmentBytes,
  );
  const newest = runs.at(-1);
  if (newest && server && holdsAll(newest, listed, server)) {
    newest.lastEndMs = Math.max(newest.lastEndMs, server.wholeUntilMs!);
  }
  const isVerified = newest && verified.to && comparePositions(newest.to, verified.to) <= 0;
  const artifacts: Artifact[] = Object.entries(verified.damaged).map(([id, { sizeBytes, endMs, msg }]) => ({
    ...{ id, startMs: endMs, endMs, sizeBytes, fingerprint: `${sizeBytes}:${endMs}` },
    ...{ method: 'other', verified: 'corrupt', fault: `${id}: ${msg}` },
  }));
  if (newest) {
    artifacts.push({
      id: newest.last,
      startMs: newest.lastEndMs,
      endMs: newest.lastEndMs,
      sizeBytes: newest.sizeBytes,
      fingerprint: '',
      method: 'other',
      // A damaged segment is an artifact of its own.
      ...(isVerified && { verified: verified.result === 'corrupt' ? 'unknown' : verified.result }),
    });
  }
  artifacts.sort((one, other) => one.startMs - other.startMs);
  return { artifacts, unfinished: [], failures: [], runs, log: verified };
}

/** Whether the archive has everything up to where the server has written. */
function holdsAll(
  { last }: SegmentRun,
  segments: readonly Segment[],
  { archived, archivedBytes = 0, wholeUntilMs }: ArchivedLog,
): boolean {
  if (archived === undefined || wholeUntilMs === undefined || archivedName(last) !== archived) return false;
  return segments.some(({ name, sizeBytes }) => name === last && sizeBytes >= archivedBytes);
}
