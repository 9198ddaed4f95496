import type { ClientTls } from '../../core/access.ts';
import type { Address } from '../../core/address.ts';
import type { Clock } from '../../core/ports.ts';
import type { StoreCheck, StoreFailureReason } from '../../core/reasons.ts';
import type { Trace } from '../connection.ts';

/** How a store is reached. Secrets are read, and stay out of every message. */
export interface StoreTarget {
  /** The store's name in the configuration, for messages. */
  store: string;
  address: Address;
  user?: string;
  /** The agent logs in as the service itself, so that what is set for this role concerns the service. */
  isServiceUser?: boolean;
  password?: string;
  tls?: ClientTls;
  /** Names of all databases or keyspaces that are configured on it. */
  databases: readonly string[];
  /** How long a statement may run, ms; it is set on the server, too, so that the server stops the statement. */
  timeoutMs: number;
}

/** The result of one check: it passes, it fails, or it is unknown for lack of permission. */
export interface CheckResult {
  check: StoreCheck;
  holds: boolean | 'unknown';
  /** What was found, in a few words with the setting's own name: `archive_timeout = 0`. */
  found: string;
}

/** A directory of the server, on the server's host. */
export interface StorageDirectory {
  /** What it holds: `data`, `WAL`, `binary log`. */
  holds: string;
  path: string;
}

/** How far the store has written and archived its log, at one poll. */
export interface LogState {
  /** The newest segment that the server says is archived. */
  archived?: string;
  /** When it was archived, ms since the epoch. */
  archivedAtMs?: number;
  /** How many bytes the archived copy of a segment must have, for a log that is copied while it grows. */
  archivedBytes?: number;
  /** Where the next entry goes. It stays the same as long as nothing is written. */
  position?: string;
  /** Nothing was written since the end of the segment `archived`. */
  isArchivedWhole: boolean;
  /** Databases of this store that the server leaves out of its binary log. */
  leavesOut?: readonly string[];
  /** What is written is archived within this time, from a moment on; none where nothing closes a segment in time. */
  closes?: { withinMs: number; fromMs: number };
}

/** What `/probes` shows of a store's log, and what the assessment of its archive uses. */
export interface ArchivedLog {
  /** The newest segment that the server says is archived. */
  archived?: string;
  /** When it was archived, ms since the epoch. */
  archivedAtMs?: number;
  /** How many bytes the archived copy of that segment must have. */
  archivedBytes?: number;
  position?: string;
  /** Databases of this store that the server leaves out of its binary log. */
  leavesOut?: readonly string[];
  /** Everything written before this time is in that segment and older ones; ms since the epoch. */
  wholeUntilMs?: number;
}

/** What a poll learned about the server. What the kind does not have, or the rights do not show, is left out. */
export interface ServerReport {
  serverVersion: string;
  /** Refuses writes, as a replica or by a setting. */
  readOnly?: boolean;
  /** Replicates another server. */
  replica?: boolean;
  /** Open connections by state, in lower case with `_` for blanks. */
  connections?: Readonly<Record<string, number>>;
  connectionsMax?: number;
  /** Stays the same as long as the data are the same: system identifier, server UUID, cluster name. */
  identity?: string;
  /** A branch of the same data: PostgreSQL's timeline. */
  timeline?: number;
  /** Which node of a cluster answered; a start time belongs to it. */
  node?: string;
  /** What the server's own clock showed, ms since the epoch; of some kinds in whole seconds. */
  nowMs?: number;
  /** ms since the epoch. A later one than before, of the same node, is a restart. */
  startedAtMs?: number;
  /** The server stores its start time; it is not derived from an uptime in whole seconds. */
  startTimeIsExact?: boolean;
  /** When the oldest log segment that waits to be archived was closed, ms since the epoch. */
  walOldestUnarchivedMs?: number;
  /** Failed attempts to archive, as the server counts them. */
  walArchiveFailures?: number;
  /** Empty while they are hidden. */
  directories?: readonly StorageDirectory[];
  log?: LogState;
  /** What the kind's own `watch` compares with earlier polls. */
  watched?: unknown;
  checks: readonly CheckResult[];
  /** Further facts for `/probes`. */
  details?: Readonly<Record<string, unknown>>;
}

/** What a poll learned about one database or keyspace. */
export interface DatabaseReport {
  /** The version in the schema's own table. */
  schemaVersion?: string;
  /** The table or its row does not exist, as in an empty database after a restore: the schema check fails. */
  schemaMissing?: string;
  /** Why the version cannot be known: too few rights, a lock. */
  schemaUnknown?: string;
  /** Its tables: `SCHEMA.TABLE`, of MySQL `DATABASE.TABLE`, of the wide-column store `TABLE-ID`, as directories are called. */
  tables?: readonly string[];
  /** Tables of PostgreSQL of which the log has nothing. */
  unlogged?: readonly string[];
  checks: readonly CheckResult[];
}

export interface StoreReport extends ServerReport, DatabaseReport {
  /** When the server was asked, and had answered, by the monotonic clock: its report may serve several databases. */
  askedAtMonotonicMs: number;
  answeredAtMonotonicMs: number;
  /** The shortest time between a request and its answer. */
  roundTripMs: number;
  /** Earliest expiry of the certificates in the chain, ms since the epoch. */
  tlsNotAfterMs?: number;
}

/** What a poll reads. */
export interface PollRequest {
  database?: string;
  /** How the schema's version is found; without it the version is not read. */
  schema?: {
    /** A configured statement in place of the kind's own; `{database}` stands for the quoted name. */
    query?: string;
  };
  /** Ask what concerns the whole server too. */
  server: boolean;
}

export interface PollAnswer {
  server?: ServerReport;
  database: DatabaseReport;
  roundTripMs: number;
}

/** One connection to a store, logged in. */
export interface StoreConnection {
  readonly tlsNotAfterMs?: number;
  /** Throws what the driver throws, and `ProbeError`. */
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
  /** The reason and a message for whatever was thrown; the message holds neither password nor connection string. */
  faultOf(thrown: unknown): StoreFault;
  /** Checks that compare `watched` of a report with those before it; called once for each poll, in their order. */
  watch?(clock: Pick<Clock, 'nowMs' | 'monotonicMs'>): (watched: unknown) => readonly CheckResult[];
}
