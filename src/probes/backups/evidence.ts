import { errorText, systemCode } from '../../core/errors.ts';
import type { BackupType, IntegrityLevel, IntegrityResult } from '../../core/reasons.ts';
import { ProbeError } from '../probe.ts';
import type { ArchivedLog } from '../stores/store-report.ts';
import type { WalRange } from './formats/manifest.ts';
import type { BinlogPlace, SegmentContent } from './formats/segments.ts';
import type { LogRange } from './formats/sstable-statistics.ts';
import type { WallTime } from './formats/wall-time.ts';
import type { ArchivedSegments } from './log-chain.ts';
import type { BackupSource, ReportFormat } from './source-blocks.ts';

/** One recorded run of a backup or of a recovery procedure (journal.ts). */
export interface RunRecord {
  startMs: number;
  /** Missing while the run is under way, or if its end was never recorded. */
  endMs?: number;
  /** The exit status; 0 is a success. */
  status?: number;
  sizeBytes?: number;
  msg?: string;
  /** The files that were there after a snapshot or a flush, relative to the keyspace. */
  files?: readonly string[];
}

/** How a backup was made. This determines what can be replayed on top of it. */
export type BackupMethod =
  | 'postgres_dump'
  | 'postgres_base'
  | 'mysql_dump'
  | 'mysql_physical'
  | 'snapshot'
  | 'flush'
  | 'configuration'
  | 'other';

/** What a verification reads, as JSON. */
export interface Verifiable {
  /**
   * The path of a file or of the directory of a backup; with `snapshot` or `flush` the directory of a keyspace; with `tool` the
   * tool's name for the backup.
   */
  path: string;
  /** Name of a snapshot of the wide-column store. */
  snapshot?: string;
  /** Incremental backups of the wide-column store: SSTables, relative to the keyspace. */
  flush?: readonly string[];
  /** Program and arguments of the tool that manages the backup and verifies it. */
  tool?: { format: ReportFormat; argv: readonly string[] };
}

/**
 * What the content of a backup says about itself, as JSON. A verification reads it; nothing here is from a file's name or time.
 */
export interface BackupContent {
  /** The backup contains everything that was committed before this time, ms since the epoch. */
  startMs?: number;
  /** The same time, if the content states it without a zone. */
  startWall?: WallTime;
  /** When the backup was complete, if the content states only that. */
  endWall?: WallTime;
  /** Why there is no time, and what would make it known. */
  unknown?: string;
  /**
   * Why it is not known whether the files of the backup are whole, and what would show it. Then nothing is known about a restore.
   */
  unread?: string;
  /** Tables whose rows are in the backup, if it names them: `SCHEMA.TABLE`, for MySQL `DATABASE.TABLE`. */
  tables?: readonly string[];
  /** Set if nothing in the backup would show that all files of a table are gone. */
  isUnlisted?: boolean;
  /** What the backup may lack, compared with the store. */
  lacks?: string;
  /** Databases in the backup, if it names them. */
  databases?: readonly string[];
  /** The position in the binary log that follows the backup. */
  binlog?: BinlogPlace;
  /** Why no log can be applied to the backup, although it states a position. */
  withoutLog?: string;
  /** Segments of WAL in the backup, by name. */
  wal?: Readonly<Record<string, SegmentContent>>;
  /** Identifier of the cluster of databases, decimal. */
  systemId?: string;
  /** Identifier of the server whose files a physical backup of MySQL or MariaDB has. */
  serverId?: string;
  /** The parts of a node's commit log in which the rows of each table are, by the table's directory, in their order. */
  commitLog?: Readonly<Record<string, readonly LogRange[]>>;
  /** MD5 of the file, hexadecimal. */
  md5?: string;
}

/**
 * The answer of a verification, as JSON. `unknown` means that the backup cannot be verified at this level: it has no checksum,
 * there is no program for it, or the format is unknown.
 */
export interface VerifyAnswer {
  result: IntegrityResult;
  /** What was verified, or what is wrong, for people. */
  msg: string;
  /** Set if the verification itself failed and will be repeated: the backup could not be read, or the process was killed. */
  isFailure?: true;
  /** Set beside `isFailure` if the system refuses to read the backup: a right is missing, or a disk fails. */
  isUnreadable?: true;
  /** The content; only in a good answer. */
  content?: BackupContent;
  /** What was read from each segment of a log, by name. */
  segments?: Readonly<Record<string, SegmentContent>>;
  /** When the answer was given, ms since the epoch. */
  atMs?: number;
}

export const ok = (msg: string, content: BackupContent): VerifyAnswer => ({ result: 'ok', msg, content });
export const corrupt = (msg: string): VerifyAnswer => ({ result: 'corrupt', msg });
export const unknown = (msg: string): VerifyAnswer => ({ result: 'unknown', msg });

/** One complete backup. Times are ms since the epoch. */
export interface Artifact {
  /** The id, which is unique within its backup and stable as long as the backup exists. It is never a label. */
  id: string;
  /**
   * When the backup began, as far as its place shows; used only for schedules. Its recovery point depends on what its content
   * says.
   */
  startMs: number;
  endMs: number;
  /**
   * When the file was written or placed where it is, by the clock of its file system. A copy keeps the times of another host,
   * whose clock may be ahead, but not this one.
   */
  placedMs?: number;
  sizeBytes: number;
  /** The fingerprint, which changes when the content may have changed: a verification is valid for one fingerprint. */
  fingerprint: string;
  method: BackupMethod;
  /** What to verify, and how; undefined if nothing can be read. */
  verify?: Verifiable;
  /** The verdict of the tool that manages the backup. */
  verified?: IntegrityResult;
  /** The zone of the local times in the content, if the configuration states it. */
  timeZone?: string;
  /**
   * The server from which the backup was taken, if its content does not say that; `unknown` if the configuration does not say it
   * either.
   */
  takenFrom?: 'primary' | 'replica' | 'unknown';
  /** What the tool, or a manifest, says about the content. */
  content?: BackupContent;
  /** What is wrong if the content is `corrupt`. */
  fault?: string;
  /** Log sequence numbers of a physical MySQL backup, decimal; an incremental backup begins where its parent ended. */
  lsn?: { from: string; to: string };
  /** The ranges of WAL that a base backup needs. */
  wal?: readonly WalRange[];
  /** The first segment of WAL that the backup needs, if a tool names it. */
  walStart?: string;
  /** Id of the backup that an incremental backup builds upon, if the tool states it. */
  parent?: string;
  /** For a flush: it contains what was written after this time, ms since the epoch. Missing for the first flush. */
  sinceMs?: number;
  /** The number of files, if nothing else would show that a file is gone. */
  files?: number;
  /** The number of files according to the record of the run that made the backup. */
  recordedFiles?: number;
  /** Whether the tool lists every segment of WAL that the backup needs. */
  hasLog?: boolean;
  /** The newest time that can be restored with logs that the tool manages itself, ms since the epoch. */
  recoverableToMs?: number;
}

/** The evidence of a source at one moment. */
export interface Evidence {
  /** A directory of the configuration that does not exist: there is no backup, or its file system is not mounted. */
  missingDirectory?: string;
  /** The complete backups, oldest first. */
  artifacts: readonly Artifact[];
  /** Backups that were begun and not completed: temporary files, directories without a manifest, runs without an end. */
  unfinished: readonly { id: string; sinceMs: number }[];
  /** The number of complete backups, or segments of a log, whose files have not settled yet. */
  unsettled?: number;
  /** Runs that reported a failure. */
  failures: readonly { id: string; endMs: number; msg: string }[];
  /** The archived log, for the type `log`. */
  log?: ArchivedSegments;
  /** Recorded runs of the job, oldest first. */
  jobs?: readonly RunRecord[];
  /** Names of the databases that must be in the backup. */
  expects?: readonly string[];
  /** Tables of the store, and when the agent first saw each, ms since the epoch; undefined if the store was never asked. */
  tables?: Readonly<Record<string, number>>;
  /** How far the clock of the store is ahead of this host's, ms. */
  aheadMs?: number;
  /** Tables of the store that are not in the log, and so not in a base backup. */
  unlogged?: readonly string[];
  /** Whether the store will be asked, and has not been asked yet. */
  awaitsTables?: boolean;
  /** Ranges of WAL that a tool lists in its archive. No segment is missing between the first and the last. */
  archives?: readonly { first: string; last: string }[];
  /** What is missing in the archive of a tool, as the tool reports it. */
  gap?: string;
  /** For the type `config`: live files that are missing in the newest copy, or have other content there. */
  drift?: readonly string[];
  /** Snapshots that are still on the node. */
  snapshots?: readonly string[];
}

/** The error for evidence that cannot be read, so that nothing is known, neither good nor bad. Its message says what to do. */
export const noEvidence = (missingDirectory: string): Evidence => ({
  missingDirectory,
  artifacts: [],
  unfinished: [],
  failures: [],
});

/**
 * The result of `reading`; undefined if the path does not exist (any more). Throws `evidence_unreadable` if it cannot be read.
 */
export async function unlessMissing<T>(path: string, reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((thrown: unknown) => {
    if (systemCode(thrown) === 'ENOENT') return undefined;
    throw unreadable(`${path} cannot be read: ${errorText(thrown)}`, thrown);
  });
}

export const unreadable = (message: string, cause?: unknown): ProbeError<'evidence_unreadable'> =>
  new ProbeError('evidence_unreadable', message, cause);

/**
 * Backups of a tool that lists its own archive can be restored as far as the archive reaches. A list names segments only: the
 * server knows that everything that it has written is in the last segment. The time at which that segment was archived proves
 * nothing.
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
 * The part of a report that an entry of this type observes, at the integrity level of the entry. An incremental backup does not
 * replace a full one, but a newer full backup replaces an incremental one. A tool's statement about its own backup is good for
 * the level `header` alone; with `verify` the tool reads the backup again.
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
