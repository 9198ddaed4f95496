import type { Change, Evidence, ProblemSeverity } from '../report.ts';
import { type KindOfProblem, kinds } from './kinds.ts';

/** What a problem is about. The relations to other problems depend on it. */
export interface Subjects {
  store?: string;
  role?: string;
  /** The role that was called, for problems of requests. */
  callee?: string;
  domain?: string;
  tasklist?: string;
  clusters?: readonly string[];
  archive?: string;
  /** The probe that checks the subject. */
  probe?: string;
}

/** A problem as evidence shows it, before its start is known for sure and before its cause is determined. */
export interface Found {
  kind: KindOfProblem;
  /** The subject; empty if the noun is enough. */
  subject: string;
  about: Subjects;
  detail?: string;
  fix?: string;
  /** The first steps for the reason of the failure. Default: the first steps of the kind. */
  firstSteps?: string;
  /** Replaces the predicate of the kind if the reason says more: `refuses|refuse connections`. */
  predicate?: string;
  /** The earliest moment that the evidence shows, wall clock, ms. */
  sinceMs?: number;
  /**
   * The pause of a problem that its cause leaves behind and that then begins anew, although its events were counted all the time,
   * wall clock, ms.
   */
  pause?: { fromMs: number; untilMs: number };
  /**
   * Since when the evidence would show the problem without anything from before that time, wall clock, ms; undefined if that is
   * not known.
   */
  newSinceMs?: number;
  /**
   * When the newest of the events that show the problem was counted, wall clock, ms; undefined for a problem that lasts. The
   * problem is seen for some time after its last event, in which it causes nothing new.
   */
  lastMs?: number;
  /**
   * For the ends of a process after which the role is down now, so that the problem lasts (`lastMs`): the line of the problem
   * that shows the downtime, and when this problem would have ended without the downtime.
   */
  down?: { line: string; lastMs: number };
  /**
   * Since when none of these events had been counted before the first of them, wall clock, ms: a problem from before that time is
   * over. Undefined if that is not known.
   */
  quietSinceMs?: number;
  /** Whether the evidence only shows that a problem which has begun goes on, and does not begin a problem. */
  onlyGoesOn?: boolean;
  /** Whether the page of a role is lost while its process runs. */
  whileWell?: boolean;
  /** The reason why the probe failed, if it did. */
  reason?: string;
  /**
   * The key under which the start of a problem is recorded. Problems with the same line have one start: a role first fails its
   * checks and then is down. Default: the id.
   */
  line?: string;
  evidence: readonly Evidence[];
  /** The sources of its values (`unread.ts`). */
  from?: readonly string[];
}

export const idOf = ({ kind, subject }: Pick<Found, 'kind' | 'subject'>): string => `${kind}/${subject}`;
export const lineOf = (found: Found): string => found.line ?? idOf(found);
export const severityOf = ({ kind }: Pick<Found, 'kind'>): ProblemSeverity => kinds[kind].severity;

/** Whether evidence is a fatal entry of a log. */
export const isFatal = ({ source, text }: Evidence): boolean => source === 'log' && text.startsWith('fatal');

/**
 * Reasons of a failed check that do not come and go with the server that is checked: credentials, certificates and names. No
 * other server causes them.
 */
const ownReasons: ReadonlySet<string> = new Set([
  ...['resolve', 'tls', 'tls_expired', 'tls_untrusted', 'tls_hostname', 'not_in_ring'],
  ...['credentials', 'denied', 'database_missing'],
]);
export const isOwnReason = (reason: string): boolean => ownReasons.has(reason);

/** Reasons with which the health check of a role fails while the role runs and lacks something. */
export const dependentReasons: ReadonlySet<string> = new Set([
  ...['persistence', 'not_ok', 'http_status', 'warming_up'],
]);
/** Reasons with which a check fails while its target starts, ends, hangs or is gone. */
const absentReasons: ReadonlySet<string> = new Set([
  ...['refused', 'unreachable', 'reset', 'connect_timeout', 'first_byte_timeout', 'body_timeout', 'too_slow'],
  ...['starting', 'shutting_down', 'warming_up'],
]);

/**
 * Whether a check that passed for a moment now fails for a reason that has nothing to do with the reason before. A reason that is
 * not known, as after an update of the agent, may be the same.
 */
export function isAnotherReason(before = '', now = ''): boolean {
  if (before === now) return false;
  if (isOwnReason(before) || isOwnReason(now)) return true;
  const isAlike = [dependentReasons, absentReasons].some((some) => some.has(before) && some.has(now));
  return before !== '' && now !== '' && !isAlike;
}

/** Why nothing shows a problem any more: its sources cannot be read, or could not be read until shortly before. */
export interface Unread {
  /** Since when it is unknown, wall clock, ms. */
  sinceMs: number;
  /** The sources that cannot be read now (`unread.ts`). */
  sources: readonly string[];
  /** Whether no other problem explained this one, so that it is an incident of its own. */
  wasCause: boolean;
}

/** A found problem whose start is known. */
export type Begun = Found & {
  sinceMs: number;
  /** When the check failed for the first time, by reason, wall clock, ms; 0 for the reason of the first failure. */
  reasonsMs?: Readonly<Record<string, number>>;
  /** When the problem was back after it had not been seen for a short time, wall clock, ms. */
  backMs?: number;
  unread?: Unread;
};

/** Since when a problem has its present form, ms: a check may fail again, or for another reason than at first. */
export const shownSinceMs = ({ sinceMs, reason = '', reasonsMs = {}, backMs = 0 }: Begun): number =>
  Math.max(sinceMs, reasonsMs[reason] ?? 0, backMs);

/**
 * A reason that is newer than its problem by less than this is not distinguished: checks that run at different times see the same
 * fault.
 */
const leastReasonMs = 60_000;

/**
 * Since when a check fails for its present reason, if the problem began for another reason that has nothing to do with it. The
 * problem keeps its start, because its subject was not well in between. Undefined if the problem began for the present reason.
 */
export function reasonSinceMs({ sinceMs, reason, reasonsMs = {} }: Begun): number | undefined {
  const alike = Object.entries(reasonsMs).filter(([one]) => !isAnotherReason(one, reason));
  const firstMs = Math.min(...alike.map(([, atMs]) => atMs));
  return alike.length > 0 && firstMs - sinceMs >= leastReasonMs ? firstMs : undefined;
}

/** The cause of a problem. `endMs` is the wall clock when the cause ended, or undefined. */
export interface ExplainedBy {
  kind: KindOfProblem;
  subject: string;
  line: string;
  endMs?: number;
  /** When the last event of the cause was counted, if it consists of events. */
  lastMs?: number;
}

/** A problem that lasts. */
export interface OpenProblem {
  line: string;
  sinceMs: number;
  /** The reason why the check failed last, if a check shows the problem. */
  reason?: string;
  /** Since when the check failed for that reason, if the problem began for another reason. */
  reasonMs?: number;
  /** Set if the subject was down. It stays so until a check passes, although a new agent has seen only one failed check. */
  isDown?: boolean;
  /** Set if the problem began before the problem that explains it now. What it was until then is an incident of its own. */
  isOlder?: boolean;
  /** When the newest of the events that show the problem was counted: the problem ends then. */
  lastMs?: number;
  down?: Found['down'];
  /** How far the wall clock has jumped since the start, ms; absent if it has not. */
  jumpedMs?: number;
  /** The sources of the problem (`unread.ts`). */
  from?: readonly string[];
  /** The cause of the problem, or the cause that it had until `endMs`. */
  explainedBy?: ExplainedBy;
  /** Set for a problem that no other problem explains, so that it becomes an incident when it ends. */
  cause?: {
    id: string;
    severity: ProblemSeverity;
    kind: string;
    subject: string;
    what: string;
    about: Subjects;
    predicate?: string;
    detail?: string;
    /** What the problem took down at its worst, as text, and the number of these problems. */
    consequences?: string;
    affected?: number;
    changes?: readonly Change[];
  };
}
