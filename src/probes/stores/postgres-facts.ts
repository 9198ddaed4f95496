import type { Replay } from './postgres-replica.ts';

export interface Slot {
  name: string;
  active: boolean;
  /** `reserved`, `extended`, `unreserved` or `lost`; null if the server does not report it. */
  status: string | null;
  /** Bytes of WAL that the slot holds back; null for a slot that never reserved WAL. */
  held: number | null;
}

/** A server that receives the log of this server and replays it. */
export interface Standby {
  name: string;
  /** Whether the standby, with all its values, is hidden from this role. */
  hidden: boolean;
  synchronous: boolean;
  /** Seconds between a commit on this server and its replay on the standby; null while nothing is written. */
  lag: number | null;
  /** Bytes of WAL that the standby has not replayed. */
  behind: number | null;
}

/** An idle or a prepared transaction, and for how many seconds it has been open. */
export interface OpenTransaction {
  what: string;
  age: number;
}

/** A session, or a prepared transaction, that other sessions wait for, and that does not wait itself. */
export interface Blocker {
  /** `session 4711 of backup, idle in transaction`. */
  what: string;
  /** For how many seconds its transaction has been open; null if that is not known. */
  age: number | null;
  /** The number of sessions that wait for any lock. */
  waiting: number;
  /** For how many seconds the first of the waiting sessions has waited for this session. */
  waited: number;
}

export type Known<T> = T | { unknown: string };

/** The answers of a server. Each part is known, or has the reason why it is not. */
export interface PostgresFacts {
  version: string;
  standby: boolean;
  startedAtMs?: number;
  /** The time on the server's clock, ms since the epoch. */
  nowMs?: number;
  /**
   * The settings by name. A setting that is hidden or that this version does not have is absent. For commands and connection
   * strings the value is empty, `nothing` (a command that does nothing) or `set`.
   */
  settings: Readonly<Record<string, string>>;
  /** Where each setting comes from: the configuration file, the database, the role. */
  sources: Readonly<Record<string, string>>;
  /** Whether the agent logs in as the service, so that a setting of its role applies to the service. */
  isServiceUser?: boolean;
  identity?: string;
  timeline?: number;
  archiver: Known<{
    failures: number;
    failing: boolean;
    failedWal: string | null;
    archivedWal: string | null;
    /** When the last file was archived, seconds since the epoch. */
    archivedAtS?: number;
  }>;
  /** The position of the next WAL record; missing on a standby. */
  lsn?: string;
  /** How often the checkpointer has run because of checkpoint_timeout or a request. */
  passes?: number;
  standbys: Known<{ list: readonly Standby[] }>;
  /** The open transactions. `isPartial`: the sessions of other roles are hidden. */
  transactions: Known<{ list: readonly OpenTransaction[]; isPartial: boolean }>;
  blockers: Known<{ list: readonly Blocker[] }>;
  backlog: Known<{ waiting: number; oldestMs?: number; ageS: number }>;
  slots: Known<{ list: readonly Slot[] }>;
  /**
   * The receivers of WAL: the name of a program that writes an archive, and the number of receivers that are hidden from this
   * role.
   */
  receivers: Known<{ hidden: number; archiving: string | null }>;
  replication: Known<Omit<Replay, 'restore' | 'primary'>>;
  connections: Known<{ byState: Readonly<Record<string, number>> }>;
  wraparound: Known<{ age: number }>;
  /** Roles whose commits do not wait for the disk. */
  asynchronous: Known<{ roles: readonly string[] }>;
}
