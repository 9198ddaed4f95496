import type { ClientTls } from '../../core/access.ts';
import type { Address } from '../../core/address.ts';
import type { StoreCheck } from '../../core/check-severity.ts';
import type { Clock } from '../../core/ports.ts';
import type { StoreFailureReason } from '../../core/reasons.ts';
import type { Trace } from '../connection.ts';

/** How a store is reached. The secrets are already read, and must not appear in any message. */
export interface StoreTarget {
  /** The store's name in the configuration, for messages. */
  store: string;
  address: Address;
  user?: string;
  /** Whether the agent logs in as the service itself, so that settings of this role apply to the service. */
  isServiceUser?: boolean;
  password?: string;
  tls?: ClientTls;
  /** Names of all databases or keyspaces that are configured for the store. */
  databases: readonly string[];
  /** How long a statement may run, ms. The limit is also set on the server, so that the server stops the statement. */
  timeoutMs: number;
}

/** The result of one check: it passes, it fails, or it is unknown for lack of permission. */
export interface CheckResult {
  check: StoreCheck;
  holds: boolean | 'unknown';
  /** The finding in a few words with the setting's own name: `archive_timeout = 0`. */
  found: string;
  /** For how long what fails has lasted by the server's own clock, s; absent if only the polls show when it began. */
  lastsS?: number;
}

/** A directory of the server, on the server's host. */
export interface StorageDirectory {
  /** The content of the directory: `data`, `WAL`, `binary log`. */
  holds: string;
  path: string;
}

/** How far the store has written and archived its log, at one poll. */
export interface LogState {
  /** The newest segment that is archived according to the server. */
  archived?: string;
  /** When that segment was archived, ms since the epoch. */
  archivedAtMs?: number;
  /** How many bytes the archived copy of the segment must have, for a log that is copied while it grows. */
  archivedBytes?: number;
  /** MariaDB's positions at the end of that copy, as `DOMAIN-NUMBER` with commas. */
  archivedGtids?: string;
  /** The position of the next entry. It stays the same as long as nothing is written. */
  position?: string;
  /** PostgreSQL's timeline of that position. */
  timeline?: number;
  /** Whether nothing was written since the end of the segment `archived`. */
  isArchivedWhole: boolean;
  /** Databases of this store that the server leaves out of its binary log. */
  leavesOut?: readonly string[];
  writer?: LogWriter;
  /** If nothing was written for this time, the rest of the log has nothing of importance. */
  empties?: { afterMs: number };
  /**
   * If nothing was written for this time, what closes segments archives the rest of the log the next time that it comes round;
   * `passes` counts that. Missing if nothing does.
   */
  closes?: { afterMs: number; passes: number };
}

/** Whose transactions are those of a MySQL store: the `server_id` of its server, or those of every node of its cluster. */
export type LogWriter = number | 'cluster';

/** The log of a store as `/probes` shows it and the assessment of its archive uses it. */
export interface ArchivedLog {
  /** The newest segment that is archived according to the server. */
  archived?: string;
  /** When that segment was archived, ms since the epoch. */
  archivedAtMs?: number;
  /** How many bytes the archived copy of that segment must have. */
  archivedBytes?: number;
  /** MariaDB's positions at the end of that copy, as `DOMAIN-NUMBER` with commas. */
  archivedGtids?: string;
  position?: string;
  timeline?: number;
  /** When the server was asked, ms since the epoch. */
  askedMs?: number;
  /** Databases of this store that the server leaves out of its binary log. */
  leavesOut?: readonly string[];
  writer?: LogWriter;
  /** Everything that was written before this time is in that segment and older ones; ms since the epoch. */
  wholeUntilMs?: number;
  /** The identity of the server's data; for PostgreSQL, the system identifier. */
  identity?: string;
}

/**
 * What a poll learned about the server. Facts that this kind of store does not have, or that the rights do not show, are left
 * out.
 */
export interface ServerReport {
  serverVersion: string;
  /** Whether the server refuses writes, as a replica or by a setting. */
  readOnly?: boolean;
  /** Whether the server replicates another server. */
  replica?: boolean;
  /** Open connections by state, in lower case with `_` for blanks. */
  connections?: Readonly<Record<string, number>>;
  connectionsMax?: number;
  /** An id that stays the same as long as the data is the same: system identifier, server UUID, cluster name. */
  identity?: string;
  /** The branch of the same data: PostgreSQL's timeline. */
  timeline?: number;
  /** The node of a cluster that answered; the start time belongs to it. */
  node?: string;
  /** The time on the server's own clock, ms since the epoch; for some kinds in whole seconds. */
  nowMs?: number;
  /** When the server started, ms since the epoch. A later time than before, for the same node, is a restart. */
  startedAtMs?: number;
  /** Whether the server stores its start time; otherwise it is computed from an uptime in whole seconds. */
  startTimeIsExact?: boolean;
  /** When the oldest log segment that waits to be archived was closed, ms since the epoch. */
  walOldestUnarchivedMs?: number;
  /** The number of failed attempts to archive, as the server counts them. */
  walArchiveFailures?: number;
  /** The directories; empty while they are hidden. */
  directories?: readonly StorageDirectory[];
  log?: LogState;
  /** The value that the kind's own `watch` compares with earlier polls. */
  watched?: unknown;
  checks: readonly CheckResult[];
  /** Further facts for `/probes`. */
  details?: Readonly<Record<string, unknown>>;
}

/** What a poll learned about one database or keyspace. */
export interface DatabaseReport {
  /** The version in the schema's own table. */
  schemaVersion?: string;
  /**
   * Set if the table or its row does not exist, for example in an empty database after a restore: the schema check fails then.
   */
  schemaMissing?: string;
  /** Why the version cannot be known, for example too few rights or a lock. */
  schemaUnknown?: string;
  /**
   * The tables of the database: `SCHEMA.TABLE`, for MySQL `DATABASE.TABLE`, for the wide-column store `TABLE-ID`, the name of the
   * directory.
   */
  tables?: readonly string[];
  /** Whether this database refuses writes, where that is known for each database; it replaces what is known about the server. */
  readOnly?: boolean;
  /** Tables of PostgreSQL that are not in the log. */
  unlogged?: readonly string[];
  checks: readonly CheckResult[];
}

/** The version in the first row of an answer, or why there is none. `query` is the configured statement. */
export function versionIn(
  value: unknown,
  database: string,
  query: string | undefined,
): Pick<DatabaseReport, 'schemaVersion' | 'schemaMissing'> {
  if (value !== undefined && value !== null) return { schemaVersion: String(value) };
  const missing = `schema_version has no row for ${database}`;
  return { schemaMissing: query === undefined ? missing : 'the schema query gives no row' };
}

export interface StoreReport extends ServerReport, DatabaseReport {
  /**
   * When the server was asked, and when it had answered, on the monotonic clock: its report may be used for several databases.
   */
  askedAtMonotonicMs: number;
  answeredAtMonotonicMs: number;
  /** The shortest time between a request and its answer. */
  roundTripMs: number;
  /** Earliest expiry of the certificates in the chain, ms since the epoch. */
  tlsNotAfterMs?: number;
}

/** What a poll has to read. */
export interface PollRequest {
  database?: string;
  /** How the schema's version is found; if it is missing, the version is not read. */
  schema?: {
    /** A configured statement that replaces the kind's own; `{database}` stands for the quoted name. */
    query?: string;
  };
  /** Whether to ask for what concerns the whole server, too. */
  server: boolean;
}

export interface PollAnswer {
  server?: ServerReport;
  database: DatabaseReport;
  roundTripMs: number;
}

/** A connection to a store, logged in. */
export interface StoreConnection {
  readonly tlsNotAfterMs?: number;
  /** The server's number of this session; missing if the kind has none. */
  readonly sessionId?: number;
  /** Which of these earlier sessions the server still has. Throws as `poll`. */
  stillOpen?(sessionIds: readonly number[]): Promise<readonly number[]>;
  /** Polls the store. Throws what the driver throws, and `ProbeError`. */
  poll(request: PollRequest): Promise<PollAnswer>;
  /** Ends the session in order, so that the server does not count an aborted client; resolves once the socket is closed. */
  close(): Promise<void>;
}

/** Why a poll failed. */
export interface StoreFault {
  reason: StoreFailureReason;
  msg: string;
}

/** A kind of store: a row of the table in stores.ts. */
export interface StoreKind {
  /**
   * Connects and logs in, in phases of `trace`. The connection is destroyed as soon as `signal` aborts, now or later.
   */
  connect(
    target: StoreTarget,
    database: string | undefined,
    trace: Trace,
    signal: AbortSignal,
  ): Promise<StoreConnection>;
  /** The reason and a message for whatever was thrown; the message contains neither password nor connection string. */
  faultOf(thrown: unknown): StoreFault;
  /**
   * Creates checks that compare `watched` of a report with that of earlier reports. The function is called once for each poll, in
   * their order.
   */
  watch?(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): (watched: unknown) => readonly CheckResult[];
}
