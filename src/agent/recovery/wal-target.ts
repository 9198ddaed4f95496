import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { errorText } from '../../core/errors.ts';
import { readWalMarks, walSegmentBytesIn } from '../../probes/backups/formats/log-segments.ts';
import { readBackupManifest, type WalRange } from '../../probes/backups/formats/manifest.ts';
import { segmentOfLsn, walName } from '../../probes/backups/formats/segments.ts';
import type { WalMark, WalRemainder } from '../../probes/backups/formats/wal-segment.ts';
import { lineageOf, positionOf } from '../../probes/backups/log-chain.ts';
import { historyName, readHistories } from '../../probes/backups/log-evidence.ts';
import type { RestoreUntil } from './base-restore.ts';

/**
 * Whether the archived log contains the requested end. PostgreSQL finds out only at the end of the replay, with the server down:
 * its start ends with an error if the log lacks the target, or if the target is before the end of the backup.
 */
interface WalEnd {
  /** Why the restore cannot end there. */
  refused?: string;
  /** Whether all of the log was written before the time, so that there is nothing to leave out. */
  isWhole?: boolean;
}

const timeText = (micros: number) => new Date(Math.floor(micros / 1000)).toISOString();

/** Reads the log from the start of the backup up to the requested end. */
export async function findWalEnd(base: string, archive: string, until: RestoreUntil): Promise<WalEnd> {
  const { walRanges, startMs } = await readBackupManifest(base);
  const [first, last] = [walRanges[0], walRanges.at(-1)];
  if (first === undefined || last === undefined)
    return { refused: 'the manifest of the backup does not say which log it needs' };
  const targetMs = until.time?.getTime();
  // The label has whole seconds: what was committed later in that second may be in the backup.
  if (targetMs !== undefined && startMs !== undefined && targetMs < startMs + 1000)
    return {
      refused: `the backup began at ${new Date(startMs).toISOString()}, ${targetMs < startMs ? 'after --until' : 'in the same second as --until'}: name an older one with --backup`,
    };
  const log = await openLog(first, last, { base, archive, timeline: until.timeline });
  if (log.refused !== undefined) return { refused: log.refused };
  return endIn(log, { start: first.start, end: last.end }, until);
}

interface ReadableLog {
  refused?: string;
  segmentBytes: number;
  /** The file of a segment by its number; undefined if neither the archive nor the backup has it. */
  fileOf(number: number): { name: string; file: string | undefined };
}

async function openLog(
  first: WalRange,
  last: WalRange,
  { base, archive, timeline }: { base: string; archive: string; timeline: number | undefined },
): Promise<ReadableLog> {
  const files = filesIn(archive, base);
  const sample = [...files.values()][0];
  const segmentBytes = sample === undefined ? 16 * 2 ** 20 : await walSegmentBytesIn(sample);
  const histories = await readHistories(
    archive,
    readdirSync(archive).filter((name) => historyName.test(name)),
  );
  const none: ReadableLog = { segmentBytes, fileOf: () => ({ name: '', file: undefined }) };
  if (timeline !== undefined && timeline !== first.timeline && !histories.has(timeline)) {
    const known = [...new Set([first.timeline, ...histories.keys()])].sort((one, other) => one - other);
    return { ...none, refused: `the log has no timeline ${timeline}; it has ${known.join(', ')}` };
  }
  const { timelines, fault } = lineageOf(last, { histories, walSegmentBytes: segmentBytes }, timeline);
  if (fault !== undefined) return { ...none, refused: fault };
  return {
    segmentBytes,
    fileOf(number) {
      const at = timelines.findLast(({ fromSegment }) => fromSegment <= number) ?? timelines[0]!;
      const name = walName(at.timeline, number, segmentBytes);
      return { name, file: files.get(name) };
    },
  };
}

/** Segments of the archive, including those in its folders, and segments that the backup contains, by their plain name. */
function filesIn(archive: string, base: string): Map<string, string> {
  const list = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);
  const folders = list(archive).filter((name) => /^[0-9A-F]{16}$/.test(name));
  const places = [join(base, 'pg_wal'), ...folders.map((name) => join(archive, name)), archive];
  const files = new Map<string, string>();
  for (const place of places) {
    for (const name of list(place)) {
      const plain = /^([0-9A-F]{24})(?:\.(?:gz|zst|lz4|xz|bz2))?$/.exec(name)?.[1];
      if (plain !== undefined) files.set(plain, join(place, name));
    }
  }
  return files;
}

async function endIn(
  log: ReadableLog,
  range: { start: string; end: string },
  { time, xid, name }: RestoreUntil,
): Promise<WalEnd> {
  if (time === undefined && xid === undefined && name === undefined) return {};
  const targetMicros = time && time.getTime() * 1000;
  const isTarget = (mark: WalMark) =>
    mark.name === undefined
      ? (xid !== undefined && mark.xid === Number(xid)) ||
        (targetMicros !== undefined && mark.micros >= targetMicros)
      : mark.name === name;
  const { found, newestMicros, ends } = await search(log, range.start, isTarget);
  const what = time ? '--until' : xid === undefined ? `restore point ${name}` : `transaction ${xid}`;
  if (found && found.end <= positionOf(range.end))
    return { refused: `${what} lies before the end of the backup: name an older one with --backup` };
  if (found) return {};
  if (time) return { isWhole: true };
  const reach = newestMicros === 0 ? 'no transaction' : `transactions up to ${timeText(newestMicros)}`;
  return { refused: `the log behind the backup has no ${what}: it has ${reach}, then ${ends}` };
}

/** The first mark in the log that is the target. */
async function search(
  { segmentBytes, fileOf }: ReadableLog,
  start: string,
  isTarget: (mark: WalMark) => boolean,
): Promise<{ found?: WalMark; newestMicros: number; ends: string }> {
  let newestMicros = 0;
  let found: WalMark | undefined;
  let remainder: WalRemainder | undefined;
  for (let number = segmentOfLsn(start, segmentBytes); ; number++) {
    const { name, file } = fileOf(number);
    if (file === undefined) return { found, newestMicros, ends: `${name} is not there` };
    try {
      const reading = await readWalMarks(file, remainder, (mark) => {
        if (mark.name === undefined) newestMicros = Math.max(newestMicros, mark.micros);
        if (found === undefined && isTarget(mark)) found = mark;
      });
      remainder = reading.remainder;
    } catch (thrown) {
      return { found, newestMicros, ends: `${name}: ${errorText(thrown)}` };
    }
    if (found) return { found, newestMicros, ends: '' };
  }
}
