import type { Artifact, BackupContent } from './evidence.ts';
import type { BinlogPlace } from './segments.ts';

/**
 * Whether a backup builds upon another. The parent that the tool names, or its log sequence numbers, decide; without them no
 * backup is known to fit.
 */
export function buildsUpon(artifact: Artifact, parent: Artifact): boolean {
  if (artifact.parent !== undefined) return artifact.parent === parent.id;
  if (artifact.lsn && parent.lsn)
    return artifact.lsn.from === parent.lsn.to && isOfSameServer(artifact.content, parent.content);
  if (artifact.method !== 'flush') return false;
  // The files of a flush were written since the flush before it, or since a snapshot after that.
  const { sinceMs = 0 } = artifact;
  if (parent.method === 'flush') return parent.startMs === sinceMs;
  return parent.method === 'snapshot' && parent.startMs >= sinceMs && parent.startMs <= artifact.startMs;
}

/**
 * Whether an incremental backup is of the server of its parent, as far as both show it: the tool takes the log sequence number of
 * the parent, and reads the changed pages of whatever server it reaches. What was committed in the parent is committed in it.
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
