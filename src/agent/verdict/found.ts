import type { Change, Evidence, ProblemSeverity } from '../report.ts';
import { type KindOfProblem, kinds } from './kinds.ts';

/** What a problem is about, for its relations to other problems. */
export interface Subjects {
  store?: string;
  role?: string;
  /** The role that was called, for requests. */
  callee?: string;
  domain?: string;
  tasklist?: string;
  clusters?: readonly string[];
  archive?: string;
  /** The probe whose target it is about. */
  probe?: string;
}

/** A problem as evidence shows it, before its start is known for sure and before causes are sought. */
export interface Found {
  kind: KindOfProblem;
  /** The subject; empty if the noun is enough. */
  subject: string;
  about: Subjects;
  detail?: string;
  fix?: string;
  /** In place of the predicate of the kind, where the reason says more: `refuses|refuse connections`. */
  predicate?: string;
  /** The earliest moment that the evidence shows, wall clock. */
  sinceMs?: number;
  /** The end and the new beginning of a problem that ended and began again within the window of its evidence, wall clock. */
  pause?: { fromMs: number; untilMs: number };
  /** Shows that a problem which has begun goes on, and is none by itself. */
  onlyGoesOn?: boolean;
  /** Why the probe failed, if one did. */
  reason?: string;
  /** Problems of one line have one start: a role that fails its checks and then is down. Default: the id. */
  line?: string;
  evidence: readonly Evidence[];
  /** What its values were read from (`unread.ts`). */
  from?: readonly string[];
}

export const idOf = ({ kind, subject }: Pick<Found, 'kind' | 'subject'>): string => `${kind}/${subject}`;
export const lineOf = (found: Found): string => found.line ?? idOf(found);
/** Whether the problems of a line are found by the result of one check. */
export const isChecked = (line: string): boolean => line.startsWith('probe/');
export const severityOf = ({ kind }: Pick<Found, 'kind'>): ProblemSeverity => kinds[kind].severity;

/** Whether evidence is a fatal entry of a log. */
export const isFatal = ({ source, text }: Evidence): boolean => source === 'log' && text.startsWith('fatal');

/** Why nothing shows a problem: what it was read from cannot be read, or could not be read until shortly before. */
export interface Unread {
  /** Wall clock. */
  sinceMs: number;
  /** The sources that cannot be read now (`unread.ts`). */
  sources: readonly string[];
  /** Whether no other problem explained it, so that it is an incident of its own. */
  wasCause: boolean;
}

/** A found problem whose start is known. */
export type Begun = Found & {
  sinceMs: number;
  /** When its check failed for the first time for each of its reasons, wall clock; 0 for the reason that it began with. */
  reasonsMs?: Readonly<Record<string, number>>;
  unread?: Unread;
};

/** Since when a problem shows itself as it does now: a check may fail for another reason than at first. */
export const shownSinceMs = ({ sinceMs, reason = '', reasonsMs = {} }: Begun): number =>
  Math.max(sinceMs, reasonsMs[reason] ?? 0);

/** The cause of a problem, wall clock where it is over. */
export interface ExplainedBy {
  kind: KindOfProblem;
  subject: string;
  line: string;
  endMs?: number;
}

/** A problem that lasts. */
export interface OpenProblem {
  line: string;
  sinceMs: number;
  /** How far the wall clock has jumped since then; absent if it has not. */
  jumpedMs?: number;
  /** What it is read from (`unread.ts`). */
  from?: readonly string[];
  /** What explains it, or did until `endMs`. */
  explainedBy?: ExplainedBy;
  /** Set for one that no other explains, so that it becomes an incident when it ends. */
  cause?: {
    id: string;
    severity: ProblemSeverity;
    kind: string;
    subject: string;
    what: string;
    about: Subjects;
    predicate?: string;
    detail?: string;
    /** What it took down, at most so far, and how many problems that is. */
    consequences?: string;
    affected?: number;
    changes?: readonly Change[];
  };
}
