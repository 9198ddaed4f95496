import { errorText } from '../../core/errors.ts';
import type { RehearsalPhase } from '../../core/reasons.ts';
import type { RunRecord } from '../backups/journal.ts';

/** What the rehearsing process restores; JSON. */
export interface RehearsalRequest {
  kind: 'postgres' | 'mysql';
  /** Where the throwaway server is made, and what it may take there. */
  directory: string;
  maxBytes: number;
  timeoutMs: number;
  /** Tells what this agent left behind from what another one did: its state directory. */
  owner: string;
  /** File or directory of the full backup; with `restore` what its tool calls it. */
  backup: string;
  /** Program and arguments of the tool that restores it, with the places `{id}` and `{directory}`. */
  restore?: readonly string[];
  /** Archived log upon it. */
  log?: { directory: string; last: string };
  /** The database as the store names it, and its role. */
  database: string;
  role: 'persistence' | 'visibility';
  /** Statement that returns the schema version; `{database}` stands for the quoted name. */
  schemaQuery?: string;
  /** The version must be at least this one. */
  schemaVersion?: string;
  /** Statement that returns the time of the newest row. */
  newestRow?: string;
  /** A user of the store, to log in where the administrator has another name. */
  user?: string;
}

/** Asks the process for no rehearsal, but to remove what a killed one left. */
export interface CleaningRequest {
  clean: true;
  directory: string;
  owner: string;
}

/**
 * JSON. `failed`: the backup cannot be restored to what the service needs. `unknown`: this host could not look, such as
 * without the server's programs, space or time.
 */
export interface RehearsalAnswer {
  result: 'ok' | 'failed' | 'unknown';
  msg: string;
  phasesMs: Partial<Record<RehearsalPhase, number>>;
  /** Size of the full backup. */
  backupBytes?: number;
  /** What was restored takes this many bytes. */
  bytes?: number;
  schemaVersion?: string;
  workflows?: number;
  /** Commit time of the newest row, as far as it is known; ms since the epoch. */
  newestRowMs?: number;
}

/** One rehearsal in the journal of the database's drills. */
export interface RehearsalRecord extends RunRecord {
  answer?: RehearsalAnswer;
  /** Name of the backup that was restored, and its size. */
  backup?: string;
}

/** Measures what each part takes. */
export interface Phases {
  measure<T>(phase: RehearsalPhase, work: () => Promise<T>): Promise<T>;
}

/** A server that runs on what was restored. */
export interface Restored {
  /** The first value of a statement's answer, as text. */
  ask(sql: string): Promise<string>;
  /** When the newest transaction of the log was committed, ms since the epoch. */
  newestMs?: number;
}

/** This host cannot look: neither good nor bad is known of the backup. */
export class CannotLook extends Error {}

/** Rethrows: a throwaway server that cannot be made at all says nothing of the backup. */
export function asUnknown(thrown: unknown): never {
  if (thrown instanceof CannotLook) throw thrown;
  throw new CannotLook(`no throwaway server can be made: ${errorText(thrown)}`);
}
