import { errorText, systemCode } from '../../core/errors.ts';
import type { BackupType, IntegrityLevel, IntegrityResult } from '../../core/reasons.ts';
import { ProbeError } from '../probe.ts';
import type { ArchivedLog } from '../stores/store-report.ts';
import type { BackupSource, ReportFormat } from './block.ts';
import type { ArchivedSegments } from './log-chain.ts';
import type { WalRange } from './manifest.ts';
import type { BinlogPlace, SegmentContent } from './segments.ts';
import type { WallTime } from './wall-time.ts';

/** One recorded run of a backup or of a recovery procedure (journal.ts). */
export interface RunRecord {
  startMs: number;
  /** Missing while it runs, or if its end was never recorded. */
  endMs?: number;
  /** Exit status; 0 is a success. */
  status?: number;
  sizeBytes?: number;
  msg?: string;
  /** The files that were there after a snapshot or a flush, relative to the keyspace. */
  files?: readonly string[];
}

/** How a backup was made, which says what can be replayed on top of it. */
export type BackupMethod =
  | 'postgres_dump'
  | 'postgres_base'
  | 'mysql_dump'
  | 'mysql_physical'
  | 'snapshot'
  | 'flush'
  | 'configuration'
  | 'other';

/** What a verification reads; JSON. */
export interface Verifiable {
  /**
   * A file, the directory of a backup that is one, with `snapshot` or `flush` that of a keyspace, with `tool` the tool's
   * name of the backup.
   */
  path: string;
  /** Name of a snapshot of the wide-column store. */
  snapshot?: string;
  /** Incremental backups of the wide-column store: SSTables, relative to the keyspace. */
  flush?: readonly string[];
  /** Program and arguments of the tool that keeps the backup and verifies it. */
  tool?: { format: ReportFormat; argv: readonly string[] };
}

/** What the content of a backup says of itself, which a verification reads; JSON. Nothing here is from a file's name or time. */
export interface BackupContent {
  /** All that was committed before is in it, ms since the epoch. */
  startMs?: number;
  /** The same moment, where the content has it as a time without a zone. */
  startWall?: WallTime;
  /** When it was complete, where the content states only that. */
  endWall?: WallTime;
  /** Why there is no time, and what would make it known. */
  unknown?: string;
  /** Why it is not known whether its files are whole, and what would show it: then nothing is known of a restore. */
  unread?: string;
  /** Tables in it with their rows, where it names them: `SCHEMA.TABLE`, of MySQL `DATABASE.TABLE`. */
  tables?: readonly string[];
  /** Nothing in it would show that all files of a table are gone. */
  isUnlisted?: boolean;
  /** What it may lack, compared with the store. */
  lacks?: string;
  /** Databases in it, where it names them. */
  databases?: readonly string[];
  /** Where the binary log goes on from it. */
  binlog?: BinlogPlace;
  /** Why no log can be applied to it, although it says where one goes on. */
  withoutLog?: string;
  /** Segments of WAL in it, by name. */
  wal?: Readonly<Record<string, SegmentContent>>;
  /** Identifier of the cluster of databases, decimal. */
  systemId?: string;
  /** MD5 of the file, hexadecimal. */
  md5?: string;
}

/** JSON. `unknown` is what cannot be verified at this level: no checksum, no program, an unknown format. */
export interface VerifyAnswer {
  result: IntegrityResult;
  /** For people: what was verified, or what is wrong. */
  msg: string;
  /**
   * The verification itself failed, so that it is tried again: the backup could not be read, the process was killed.
   */
  isFailure?: true;
  /** Only for a good answer. */
  content?: BackupContent;
  /** What was read of each segment of a log, by name. */
  segments?: Readonly<Record<string, SegmentContent>>;
  /** When it was answered, ms since the epoch. */
  atMs?: number;
}

/** One complete backup. Times are ms since the epoch. */
export interface Artifact {
  /** Unique within its backup and stable as long as the backup exists. Never a label. */
  id: string;
  /** When it was begun, as far as its place shows: for schedules alone. Its recovery point is what its content says. */
  startMs: number;
  endMs: number;
  sizeBytes: number;
  /** Changes when the content may have changed: a verification holds for one fingerprint. */
  fingerprint: string;
  method: BackupMethod;
  /** What to verify, and how; none where nothing can be read. */
  verify?: Verifiable;
  /** The verdict of the tool that keeps the backup. */
  verified?: IntegrityResult;
  /** The zone of the local times in its content, where the configuration says so. */
  timeZone?: string;
  /** The server it was taken from, where its content does not say that; `unknown` if the configuration does not say it either. */
  takenFrom?: 'primary' | 'replica' | 'unknown';
  /** What the tool, or a manifest, says of the content. */
  content?: BackupContent;
  /** What is wrong, if the content is `corrupt`. */
  fault?: string;
  /** Log sequence numbers of a physical MySQL backup, decimal; an incremental backup begins where its parent ended. */
  lsn?: { from: string; to: string };
  /** WAL that a base backup needs. */
  wal?: readonly WalRange[];
  /** First segment of WAL that it needs, where a tool names it. */
  walStart?: string;
  /** Id of the backup that an incremental builds upon, where the tool says so. */
  parent?: string;
  /** For a flush: it holds what was written after this time, ms since the epoch. Missing for the first flush. */
  sinceMs?: number;
  /** How many files it has, where one that is gone would not show. */
  files?: number;
  /** How many files it had, by the record of the run that made it. */
  recordedFiles?: number;
  /** The tool lists every segment of WAL that it needs. */
  hasLog?: boolean;
  /** Newest moment that can be restored with logs that the tool keeps itself. */
  recoverableToMs?: number;
}

/** What a source shows at one moment. */
export interface Evidence {
  /** A directory of the configuration that does not exist: there is no backup, or its file system is not mounted. */
  missingDirectory?: string;
  /** Oldest first. */
  artifacts: readonly Artifact[];
  /** Begun and not completed: temporary files, directories without a manifest, runs without an end. */
  unfinished: readonly { id: string; sinceMs: number }[];
  /** Runs that reported a failure. */
  failures: readonly { id: string; endMs: number; msg: string }[];
  /** Archived log, for type `log`. */
  log?: ArchivedSegments;
  /** Recorded runs of the job, oldest first. */
  jobs?: readonly RunRecord[];
  /** Names of the databases that must be in it. */
  expects?: readonly string[];
  /** Tables of the store, and when the agent first saw each, ms since the epoch; undefined where it never asked. */
  tables?: Readonly<Record<string, number>>;
  /** How far the clock of the store is ahead of this host's, ms. */
  aheadMs?: number;
  /** Tables of the store of which the log, and so a base backup, has nothing. */
  unlogged?: readonly string[];
  /** The store is going to be asked, and has not been yet. */
  awaitsTables?: boolean;
  /** Ranges of WAL that a tool lists in its archive, without a segment missing between the first and the last. */
  archives?: readonly { first: string; last: string }[];
  /** What is missing in the archive of a tool, by its own account. */
  gap?: string;
  /** For type `config`: live files that the newest copy lacks, or has with other content. */
  drift?: readonly string[];
  /** Snapshots that are still on the node. */
  snapshots?: readonly string[];
}

/** The evidence cannot be read, so that nothing is known, neither good nor bad; the message says what to do. */
export const noEvidence = (missingDirectory: string): Evidence => ({
  missingDirectory,
  artifacts: [],
  unfinished: [],
  failures: [],
});

/** Undefined for what does not exist (any more). Throws `evidence_unreadable` for what cannot be read. */
export async function unlessMissing<T>(path: string, reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((thrown: unknown) => {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw unreadable(`${path} cannot be read: ${errorText(thrown)}`, thrown);
  });
}

export const unreadable = (message: string, cause?: unknown): ProbeError<'evidence_unreadable'> =>
  new ProbeError('evidence_unreadable', message, cause);

/**
 * Backups of a tool that lists its own archive can be restored as far as that reaches. A list names segments only: the
 * server knows that all it has written is in the last one. When that one was archived proves nothing.
 */
export function withArchive(evidence: Evidence, server: ArchivedLog | undefined): Evidence {
  const { archived, wholeUntilMs } = server ?? {};
  const isSame = (one: string, other: string) => one.slice(0, 8) === other.slice(0, 8);
  const artifacts = evidence.artifacts.map((artifact): Artifact => {
    const start = artifact.walStart;
    const archive = evidence.archives?.find(
      ({ first, last }) => start !== undefined && isSame(start, first) && start >= first && start <= last,
    );
    if (archive === undefined) return artifact;
    const isWhole = archived !== undefined && isSame(archive.last, archived) && archive.last >= archived;
    return { ...artifact, hasLog: true, ...(isWhole && { recoverableToMs: wholeUntilMs }) };
  });
  return { ...evidence, artifacts };
}

/**
 * The part of a report that an entry of this type observes, as its integrity level takes it. A full backup is not
 * replaced by an incremental one, but a newer full backup stands in for an incremental one. What a tool says of its
 * own backup is good for the level `header` alone; with `verify` the tool reads the backup again.
 */
export function forEntry(
  evidence: Evidence,
  type: BackupType,
  level: IntegrityLevel,
  { format, verify }: Pick<BackupSource & { kind: 'command' }, 'format' | 'verify'>,
): Evidence {
  const artifacts = evidence.artifacts
    .filter(({ parent }) => type !== 'full' || parent === undefined)
    .map((artifact): Artifact => {
      const { id, verified } = artifact;
      if (verified === 'corrupt' || format === 'json') return artifact;
      if (verify) {
        const argv = verify.map((word) => word.replaceAll('{id}', id));
        return { ...artifact, verified: undefined, verify: { path: id, tool: { format, argv } } };
      }
      return level === 'header' ? artifact : { ...artifact, verified: 'unknown' };
    });
  return { ...evidence, artifacts };
}
