import { errorText } from '../../core/errors.ts';
import type { RehearsalPhase } from '../../core/reasons.ts';
import type { RunRecord } from '../backups/journal.ts';

/** What the rehearsing process restores, as JSON. */
export interface RehearsalRequest {
  kind: 'postgres' | 'mysql';
  /** The directory of the throwaway server, and the space that it may use there. */
  directory: string;
  maxBytes: number;
  timeoutMs: number;
  /** The state directory of the agent, which distinguishes what this agent left behind from what another agent left. */
  owner: string;
  /** File or directory of the full backup; with `restore` the tool's name for the backup. */
  backup: string;
  /** Program and arguments of the tool that restores the backup, with the placeholders `{id}` and `{directory}`. */
  restore?: readonly string[];
  /** The archived log to apply. */
  log?: { directory: string; last: string };
  /** The name of the database in the store, and its role. */
  database: string;
  role: 'persistence' | 'visibility';
  /** Statement that returns the schema version; `{database}` stands for the quoted name. */
  schemaQuery?: string;
  schemaVersion?: string;
  /** Statement that returns the time of the newest row. */
  newestRow?: string;
  /** A user of the store, for logging in if the administrator has another name. */
  user?: string;
}

/** A request to rehearse nothing, but to remove what a killed process left behind. */
export interface CleaningRequest {
  clean: true;
  directory: string;
  owner: string;
}

/**
 * The answer as JSON. `failed`: what the service needs cannot be restored from the backup. `unknown`: this host could not find
 * out, for example without the server's programs, space or time.
 */
export interface RehearsalAnswer {
  result: 'ok' | 'failed' | 'unknown';
  msg: string;
  phasesMs: Partial<Record<RehearsalPhase, number>>;
  /** Size of the full backup. */
  backupBytes?: number;
  /** The size of the restored data in bytes. */
  bytes?: number;
  schemaVersion?: string;
  workflows?: number;
  /** Commit time of the newest row, if it is known, ms since the epoch. */
  newestRowMs?: number;
}

/** One rehearsal in the journal of the database's drills. */
export interface RehearsalRecord extends RunRecord {
  answer?: RehearsalAnswer;
  /** Name and size of the backup that was restored. */
  backup?: string;
  /** The fingerprint of the settings; a rehearsal with other settings is due at once. */
  settings?: string;
}

/** Measures the duration of each phase. */
export interface Phases {
  measure<T>(phase: RehearsalPhase, work: () => Promise<T>): Promise<T>;
}

/** A server that runs on the restored data. */
export interface Restored {
  /** The first value of a statement's result, as text. */
  ask(sql: string): Promise<string>;
  /** When the newest transaction of the log was committed, ms since the epoch. */
  newestMs?: number;
}

/** The error if this host cannot find out whether the backup is good or bad. */
export class CannotLook extends Error {}

/** Throws `CannotLook` for an error: if a throwaway server cannot be created at all, that says nothing about the backup. */
export function asUnknown(thrown: unknown): never {
  if (thrown instanceof CannotLook) throw thrown;
  throw new CannotLook(`no throwaway server can be made: ${errorText(thrown)}`);
}
