import type { ClientTls } from '../../core/access.ts';
import type { Address } from '../../core/address.ts';
import type { StoreCheck, StoreFailureReason } from '../../core/reasons.ts';

/** How one database of a store is reached; secrets are read, and never leave in a message. */
export interface StoreTarget {
  /** Where the store is named in errors and logs: its name in the configuration. */
  store: string;
  address: Address;
  user?: string;
  password?: string;
  tls?: ClientTls;
  /** Name of the database or keyspace. */
  database?: string;
  /** Statement that gives the schema's version in its first column; each `{database}` in it is the quoted name. */
  schemaQuery: string;
  /** How long the look may take, ms; the server is told too, so that it does not work on for nobody. Default 10 s. */
  timeoutMs?: number;
}

/** One check of the posture: holds, does not hold, or cannot be known with the rights at hand. */
export interface StoreVerdict {
  check: StoreCheck;
  holds: boolean | 'unknown';
  /** What was found, in a few words with the setting's own name: `archive_timeout = 0`. */
  found: string;
}

/** What one look at a store found; what the store's kind does not have, or the rights do not show, is left out. */
export interface StoreLook {
  serverVersion: string;
  roundTripMs: number;
  /** Refuses writes, as a replica or by setting. */
  readOnly?: boolean;
  /** Copies another server. */
  replica?: boolean;
  /** The version that the schema's own table names. */
  schemaVersion?: string;
  /** Why there is none: a table missing, too few rights. */
  schemaUnknown?: string;
  /** Open connections by state as the store names it, lower case and `_` for blanks. */
  connections?: Readonly<Record<string, number>>;
  connectionsMax?: number;
  /** ms since the epoch; a later one than at the last look is a restart. */
  startedAtMs?: number;
  /** The store keeps that time: it is not worked out from a time since, and is the same at each look. */
  startKept?: boolean;
  /** What stays the same as long as it is the same data: system identifier, server uuid, host and cluster name. */
  identity?: string;
  /** A branch of the same data: PostgreSQL's timeline. */
  timeline?: number;
  /** When the oldest log segment not yet archived was closed, ms since the epoch; none when nothing waits. */
  walOldestUnarchivedMs?: number;
  /** Attempts to archive that failed, in all, as the store counts them. */
  walArchiveFailures?: number;
  /** Earliest end of a certificate met, ms since the epoch. */
  tlsNotAfterMs?: number;
  verdicts: readonly StoreVerdict[];
  /** How long each step took. */
  phasesMs?: Readonly<Record<string, number>>;
  /** What else a person wants to see. */
  details?: Readonly<Record<string, unknown>>;
}

/** Why a look failed, in the agent's words. */
export interface StoreFault {
  reason: StoreFailureReason;
  msg: string;
}

/** A kind of store: a row of `kinds.ts`. */
export interface StoreKindRow {
  /**
   * One look over one connection, which is closed, or destroyed once `signal` aborts, before it settles.
   * Throws what the driver throws; `faultOf` says what that means.
   */
  look(target: StoreTarget, signal: AbortSignal): Promise<StoreLook>;
  /** What was thrown, in the agent's words; the message holds neither password nor connection string. */
  faultOf(thrown: unknown): StoreFault;
}
