import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchivedLog } from '../stores/store-report.ts';
import {
  type Artifact,
  type Evidence,
  noEvidence,
  unlessMissing,
  unreadable,
  type VerifyAnswer,
} from './evidence.ts';
import { listBackupDirectory, statOf, temporaryName } from './files.ts';
import { compressionOf, decompress } from './formats/byte-stream.ts';
import type { KeptReading, SegmentReadings } from './formats/segment-readings.ts';
import {
  archivedName,
  type BinlogPlace,
  checksumOf,
  type PlacedSegment,
  placeSegments,
  plainWalSegmentBytes,
  type Segment,
  type SegmentsToVerify,
  walFolder,
  wholeUntil,
} from './formats/segments.ts';
import { type ArchivedSegments, gapIn, type Switch } from './log-chain.ts';
import type { BackupSource } from './source-blocks.ts';

type SegmentsSource = BackupSource & { kind: 'segments' };

export interface LogEvidence extends Evidence {
  log: ArchivedSegments;
}

export interface LogReading {
  /** The log according to the store's probe: the log of an idle store is complete up to the poll that found it archived. */
  server?: ArchivedLog;
  readings?: SegmentReadings;
  /** The interval after which a segment is read again. */
  everyMs?: number;
  /** The positions in a binary log at which backups were taken. */
  places?: readonly BinlogPlace[];
  /** Reads segments of the directory; undefined while there is no answer yet. */
  verify?: (segments: SegmentsToVerify) => Promise<VerifyAnswer | undefined>;
}

/** A file in the listing. */
interface Listed extends Segment {
  identity: string;
}

/** How many requests one check makes while answers come at once. */
const mostRounds = 4;
/** The maximum numbers of segments and bytes that are read for one answer, so that answers come now and then. */
const [mostSegments, mostBytes] = [256, 2 ** 30];

/**
 * Archived segments of a write-ahead or binary log, with what was read from each. A damaged segment breaks the log in the same
 * way as a missing one. It is also an artifact, so that it is counted once.
 */
export async function readSegments(
  source: SegmentsSource,
  nowMs: number,
  reading: LogReading = {},
): Promise<LogEvidence> {
  const { directory, log: kind } = source;
  const found = await listSegments(source, nowMs);
  const empty: ArchivedSegments = { kind, placed: [], histories: new Map() };
  if (found === undefined) return { ...noEvidence(directory), log: empty };
  const walSegmentBytes = kind === 'wal' ? await segmentBytesOf(directory, found.segments) : undefined;
  const listed = new Map(found.segments.map((segment) => [segment.name, segment]));
  const placed = withoutRivals(
    await withContents(
      source,
      placeSegments(kind, found.segments, walSegmentBytes),
      { listed, nowMs },
      reading,
    ),
  );
  const histories = await readHistories(directory, found.histories);
  const log = { kind, placed, histories, walSegmentBytes, server: reading.server };
  return { ...evidenceOf(log), unsettled: found.unsettled, gap: gapIn(log), log };
}

/**
 * The segment size of a cluster, which initdb sets: the size of a plain file, or the size that the first page of a compressed
 * file states. Undefined if neither is known, for example if the files cannot be unpacked here.
 */
async function segmentBytesOf(directory: string, segments: readonly Segment[]): Promise<number | undefined> {
  const plain = plainWalSegmentBytes(segments);
  if (plain !== undefined) return plain;
  const { walSegmentBytesIn } = await import('./formats/log-segments.ts');
  for (const { name } of segments.slice(0, 3)) {
    const found = await walSegmentBytesIn(join(directory, name)).catch(() => undefined);
    if (found !== undefined) return found;
  }
  return undefined;
}

export const historyName = /^([0-9A-F]{8})\.history(?:\.(?:gz|zst|xz|bz2|lz4))?$/;

async function listSegments(
  { directory, log, settleMs }: SegmentsSource,
  nowMs: number,
): Promise<{ segments: Listed[]; histories: string[]; unsettled: number } | undefined> {
  const names = await listBackupDirectory(directory);
  if (names === undefined) return undefined;
  const folders = log === 'wal' ? names.filter((name) => walFolder.test(name)) : [];
  const below = folders.map(async (folder) => {
    const inside = (await listBackupDirectory(join(directory, folder))) ?? [];
    return inside.map((name) => join(folder, name));
  });
  const segments: Listed[] = [];
  let unsettled = 0;
  for (const name of [names, ...(await Promise.all(below))].flat()) {
    if (temporaryName.test(name) || historyName.test(name)) continue;
    const stats = await statOf(join(directory, name));
    if (!stats?.isFile()) continue;
    if (nowMs - stats.mtimeMs < settleMs) {
      unsettled += 1;
      continue;
    }
    const identity = `${stats.ino}:${stats.size}:${Math.trunc(stats.mtimeMs)}`;
    segments.push({ name, endMs: stats.mtimeMs, sizeBytes: stats.size, identity });
  }
  const histories = log === 'wal' ? names.filter((name) => historyName.test(name)) : [];
  return { segments, histories, unsettled };
}

/** The parents of each timeline, from the timeline's `.history` file; none if the file cannot be read here. */
export async function readHistories(
  directory: string,
  names: readonly string[],
): Promise<ReadonlyMap<number, readonly Switch[]>> {
  const histories = new Map<number, readonly Switch[]>();
  for (const name of names) {
    const bytes = await unlessMissing(join(directory, name), readFile(join(directory, name)));
    if (bytes === undefined) continue;
    // A history that cannot be read has no line: its timeline is known, and its parents are not.
    const text = await plainText(bytes).catch(() => '');
    const switches = [...text.matchAll(/^\s*(\d+)\s+([0-9A-F]{1,8}\/[0-9A-F]{1,8})/gm)];
    histories.set(
      Number.parseInt(historyName.exec(name)![1]!, 16),
      switches.map(([, timeline, lsn]) => ({ timeline: Number(timeline), lsn: lsn! })),
    );
  }
  return histories;
}

/** The text of a small file. Barman compresses histories like segments, and leaves their names as they are. */
async function plainText(bytes: Buffer): Promise<string> {
  const compression = compressionOf(bytes);
  if (compression === undefined) return bytes.toString('utf8');
  const chunks: Buffer[] = [];
  const source = (async function* () {
    yield bytes;
  })();
  for await (const chunk of decompress(source, compression)) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

/** Adds what is known about each segment, and requests the next segments that are new or were changed. */
async function withContents(
  { log }: SegmentsSource,
  placed: readonly PlacedSegment[],
  { listed, nowMs }: { listed: ReadonlyMap<string, Listed>; nowMs: number },
  { readings, verify, everyMs = Number.POSITIVE_INFINITY, places = [] }: LogReading,
): Promise<PlacedSegment[]> {
  if (readings === undefined) return [...placed];
  const before = predecessors(placed);
  const readingOf = (name: string) => readings.find(name, listed.get(name)!.identity);
  const newest = placed.at(-1)?.segment.name ?? '';
  const placesIn = (name: string) =>
    places.flatMap(({ file, position }) => (file === archivedName(name) ? position : []));
  const isDue = ({ segment: { name } }: PlacedSegment) => {
    const known = readingOf(name);
    if (known === undefined || nowMs - known.atMs >= everyMs) return true;
    const { fault, unverified, binlog } = known.content;
    const isReadable = fault === undefined && unverified === undefined;
    // An agent before this one did not note whose file it is.
    if (binlog !== undefined && binlog.owner === undefined) return true;
    if (isReadable && placesIn(name).some((place) => binlog?.places?.[place] === undefined)) return true;
    // The segment was read behind another segment, or as the newest one, which may end anywhere.
    const last = before.get(name);
    const isLinked = known.content.after === last || (last && readingOf(last)?.content.wal === undefined);
    const wasNewest = known.content.binlog?.isCut === true && name !== newest;
    return (log === 'wal' && last !== undefined && !isLinked) || wasNewest;
  };
  for (let round = 0; round < mostRounds && verify !== undefined; round++) {
    const due = nextBatch(placed.filter(isDue), before);
    const [first] = due;
    if (first === undefined) break;
    const after = before.get(first.segment.name);
    const last = after === undefined ? undefined : readingOf(after)?.content.wal;
    const answer = await verify({
      log,
      names: due.map(({ segment }) => segment.name),
      ...(last && { after, remainder: last.remainder }),
      newest,
      ...(places.length > 0 && {
        places: Object.fromEntries(due.map(({ segment: { name } }) => [name, placesIn(name)])),
      }),
    });
    if (answer?.isUnreadable) throw unreadable(`cannot be read: ${answer.msg}`);
    const kept = keptOf(answer, listed, nowMs);
    if (kept.length === 0) break;
    await readings.keep(kept);
  }
  await readings.keepOnly(new Set(listed.keys()));
  return placed.map(({ segment, at }) => {
    const content = readingOf(segment.name)?.content;
    return { segment: { ...segment, content }, at };
  });
}

/**
 * The segments, with a fault for each that pgBackRest refuses to restore because its archive has two contents of it. Two servers
 * that both believe to be the primary leave such contents. The checksum of the content is in the name.
 */
function withoutRivals(placed: readonly PlacedSegment[]): PlacedSegment[] {
  const contents = new Map<string, Set<string>>();
  for (const { segment } of placed) {
    const checksum = checksumOf(segment.name);
    if (checksum === undefined) continue;
    const name = archivedName(segment.name);
    contents.set(name, (contents.get(name) ?? new Set()).add(checksum));
  }
  return placed.map(({ segment, at }) => {
    const count = contents.get(archivedName(segment.name))?.size ?? 0;
    if (count < 2) return { segment, at };
    const fault = `the archive has ${count} different segments of this name: do several servers archive into it?`;
    return { segment: { ...segment, content: { ...segment.content, fault } }, at };
  });
}

function keptOf(
  answer: VerifyAnswer | undefined,
  listed: ReadonlyMap<string, Listed>,
  nowMs: number,
): KeptReading[] {
  return Object.entries(answer?.segments ?? {}).flatMap(([name, content]) => {
    const identity = listed.get(name)?.identity;
    return identity === undefined ? [] : [{ name, identity, atMs: nowMs, content }];
  });
}

/** The predecessor of each segment, by name; on a new timeline it is a segment of an older timeline. */
function predecessors(placed: readonly PlacedSegment[]): ReadonlyMap<string, string> {
  const byNumber = new Map<number, PlacedSegment[]>();
  for (const each of placed) byNumber.set(each.at.number, [...(byNumber.get(each.at.number) ?? []), each]);
  return new Map(
    placed.flatMap(({ segment, at }) => {
      const last = byNumber.get(at.number - 1)?.findLast((other) => other.at.timeline <= at.timeline);
      return last ? [[segment.name, last.segment.name] as const] : [];
    }),
  );
}

/** The first segment that is due, and the due segments that follow it without a gap. */
function nextBatch(due: readonly PlacedSegment[], before: ReadonlyMap<string, string>): PlacedSegment[] {
  const batch: PlacedSegment[] = [];
  let bytes = 0;
  for (const each of due) {
    const last = batch.at(-1)?.segment.name;
    if (last !== undefined && before.get(each.segment.name) !== last) break;
    if (batch.length === mostSegments || (last !== undefined && bytes + each.segment.sizeBytes > mostBytes))
      break;
    batch.push(each);
    bytes += each.segment.sizeBytes;
  }
  return batch;
}

/** The log as a backup, which is as new as its newest segments show. */
function evidenceOf(log: ArchivedSegments): Evidence {
  const artifacts: Artifact[] = log.placed.flatMap(({ segment: { name, endMs, sizeBytes, content } }) => {
    if (content?.fault === undefined) return [];
    const fingerprint = `${sizeBytes}:${endMs}`;
    const fault = `${name}: ${content.fault}`;
    return {
      id: name,
      startMs: endMs,
      endMs,
      sizeBytes,
      fingerprint,
      method: 'other',
      verified: 'corrupt',
      fault,
    };
  });
  const last = log.placed.at(-1)?.segment;
  const readable = log.placed.filter(({ segment: { content } }) => content && content.fault === undefined);
  const shown = readable.findLast(({ segment }) => segment.content?.newestMs !== undefined)?.segment;
  const whole = wholeUntil(readable.at(-1)?.segment, log.server);
  // Nothing in a file is newer than the file: the clock of the server may have been ahead.
  const shownMs = Math.min(shown?.content?.newestMs ?? 0, shown?.endMs ?? 0);
  const newestMs = Math.max(shownMs, whole ?? 0);
  if (last && newestMs > 0) {
    const unverified = log.placed.some(({ segment: { content } }) => content?.unverified !== undefined);
    artifacts.push({
      ...{ id: readable.at(-1)!.segment.name, startMs: newestMs, endMs: newestMs, fingerprint: '' },
      sizeBytes: log.placed.reduce((sum, { segment }) => sum + segment.sizeBytes, 0),
      ...{ method: 'other', verified: unverified ? 'unknown' : 'ok' },
    });
  }
  artifacts.sort((one, other) => one.startMs - other.startMs);
  return { artifacts, unfinished: [], failures: [] };
}
