import { createdMsOf } from './cassandra-backups.ts';
import type { Artifact, BackupContent } from './evidence.ts';
import type { BinlogPlace } from './formats/segments.ts';
import { comparePlaces, type LogPlace, type LogRange } from './formats/sstable-statistics.ts';

/**
 * Whether a backup builds upon another. The parent that the tool names, or its log sequence numbers, decide; without them no
 * backup is known to fit.
 */
export function buildsUpon(artifact: Artifact, parent: Artifact): boolean {
  if (artifact.parent !== undefined) return artifact.parent === parent.id;
  if (artifact.lsn && parent.lsn)
    return artifact.lsn.from === parent.lsn.to && isOfSameServer(artifact.content, parent.content);
  if (artifact.method !== 'flush') return false;
  // The files of a flush were written since the previous flush, or since a snapshot after the previous flush.
  const { sinceMs = 0 } = artifact;
  if (parent.method === 'flush') return parent.startMs === sinceMs;
  return parent.method === 'snapshot' && parent.startMs >= sinceMs && parent.startMs <= artifact.startMs;
}

/**
 * Whether an incremental backup is from the server of its parent, as far as both show it: the tool takes the log sequence number
 * of the parent, and reads the changed pages of whatever server it reaches. Everything that was committed in the parent must be
 * committed in the backup, too.
 */
function isOfSameServer(
  { serverId, binlog }: BackupContent = {},
  { serverId: ofParent, binlog: before }: BackupContent = {},
): boolean {
  if (serverId !== undefined && ofParent !== undefined && serverId !== ofParent) return false;
  if (binlog === undefined || before === undefined) return true;
  const reached = transactionsOf(binlog);
  const committed = transactionsOf(before);
  if (reached.size > 0 && committed.size > 0)
    return [...committed].every(([domain, { number, server }]) => {
      const last = reached.get(domain);
      return (
        last !== undefined && (last.number > number || (last.number === number && last.server === server))
      );
    });
  const [file, fileBefore] = [binlog.file, before.file].map((name) => /^(.*)\.(\d+)$/.exec(name));
  if (!file || !fileBefore || file[1] !== fileBefore[1]) return true;
  const files = Number(file[2]) - Number(fileBefore[2]);
  return files > 0 || (files === 0 && binlog.position >= before.position);
}

/** The last transaction of each of MariaDB's domains. */
const transactionsOf = ({ gtids = '' }: BinlogPlace) =>
  new Map(
    gtids
      .split(',')
      .map((gtid) => gtid.split('-'))
      .flatMap(([domain, server, number]) =>
        number === undefined ? [] : [[domain!, { server, number: Number(number) }] as const],
      ),
  );

/**
 * If the numbers of two segments of the commit log are further apart than this, the node was started between them: the numbers of
 * each start begin with its time.
 */
const mostSegments = 10_000;

/**
 * Whether a flush continues the backups before it. The rows in memory begin where the last flush of their table ended in the
 * commit log of the node. The rows of a flush in between, which wrote no incremental backup, are in none of the backups.
 */
export function continues({ content }: Artifact, bases: readonly Artifact[]): boolean {
  const [full] = bases;
  if (content?.commitLog === undefined || full?.content?.commitLog === undefined) return true;
  const ends = new Map<string, LogPlace>();
  for (const { content: before } of bases)
    for (const [table, ranges] of Object.entries(before?.commitLog ?? {}))
      ends.set(table, latest(ends.get(table), ranges));
  // A table without rows in the snapshot was flushed no later than the other tables.
  const snapshotEnd = Object.values(full.content.commitLog).reduce<LogPlace | undefined>(latest, undefined);
  return Object.entries(content.commitLog).every(([table, ranges]) => {
    const isOlder = (createdMsOf(table) ?? Number.POSITIVE_INFINITY) <= full.startMs;
    const end = ends.get(table) ?? (isOlder ? snapshotEnd : undefined);
    return ranges.every(({ from }, at) => {
      const before = at === 0 ? end : ranges[at - 1]!.to;
      return before === undefined || comparePlaces(from, before) <= 0 || from[0] - before[0] > mostSegments;
    });
  });
}

function latest(end: LogPlace | undefined, ranges: readonly LogRange[]): LogPlace {
  const last = ranges.at(-1)!.to;
  return end === undefined || comparePlaces(last, end) > 0 ? last : end;
}
