import type { Evidence, StatusFacts } from '../report.ts';
import { type Explained, type IsInTime, isCauseAt, mostCauses, wouldExplain } from './causes.ts';
import { leastPauseMs, rateMs } from './condition.ts';
import { lookBackMs } from './conditions.ts';
import {
  type Begun,
  type ExplainedBy,
  type Found,
  idOf,
  isFatal,
  lineOf,
  type OpenProblem,
  severityOf,
  shownSinceMs,
} from './found.ts';
import { isKind, placeOf } from './kinds.ts';

interface Left {
  /** The problems whose evidence only looks back at causes that are over. */
  left: ReadonlySet<Explained>;
  /** The causes of these problems that are over. */
  over: readonly ExplainedBy[];
  /** The cause of each problem, by the line of the problem. */
  explainedBy: ReadonlyMap<string, ExplainedBy>;
  /** The lines of problems that ended a short time ago and whose cause is found only now. */
  explainedLate: readonly string[];
}

/** Whether nothing can be said about a line yet, for example after a restart of the agent. */
type IsUnknown = (line: string) => boolean;

interface Moment {
  nowMs: number;
  facts: StatusFacts;
  isUnknown: IsUnknown;
  goesOn(line: string): boolean;
}

/**
 * Tracks the traces that a cause leaves behind: a rate still counts the errors of an outage that is over, or a check has not run
 * since its end.
 */
interface Aftermath {
  /**
   * The problem, with a pause from the end of its cause on, if its newest evidence shows the problem without anything from before
   * that end. The problem then began anew, although the window of its evidence may contain the outage.
   */
  apart(found: Found): Found;
  /**
   * Tells by their times which of the problems that are seen now may be causes of which others. A problem that outlasts its cause
   * may have another cause that began when the first cause ended. A cause that is back explains what it explained before.
   * `goesOn`: whether a problem that is seen now, or was seen shortly before, is still the same problem.
   */
  timesOf(all: readonly Begun[], { nowMs, facts, isUnknown, goesOn }: Moment): IsInTime;
  /** Records the problems that are seen now, and returns what the causes left behind. */
  of(all: readonly Explained[], { nowMs, facts, isUnknown }: Moment): Left;
  /** Corrects the recorded ends of causes after the wall clock jumped, so that the time since then stays the same. */
  clockJumped(byMs: number): void;
  /** Restores the causes of the problems that lasted when the agent ended. */
  restore(lasting: readonly OpenProblem[]): void;
}

/**
 * Whether all evidence of a problem is from before the end of its cause, or from a window that begins before that end. What is
 * counted soon after the end may be from before it, because pages are read late.
 */
function looksBack(found: Begun, endMs: number, nowMs: number): boolean {
  const { kind, evidence, newSinceMs = 0 } = found;
  const isNewer = ({ at = '' }: Evidence) => Date.parse(at) >= endMs;
  // The end of a process after the cause is a problem of its own.
  if (evidence.some((one) => isFatal(one) && isNewer(one))) return false;
  const spanMs = lookBackMs(kind);
  if (spanMs > 0) return nowMs - endMs < spanMs && newSinceMs < endMs + leastPauseMs;
  const check = evidence.find(({ source }) => source === 'probe');
  return check !== undefined && !isNewer(check);
}

/** A cause is usually counted within this time: pages are read, and values sampled, four times a minute. */
const countedWithinMs = 30_000;

/** The end of a cause that is not seen any more. Restarts are seen for minutes after the last restart. */
const endOf = ({ lastMs }: Pick<ExplainedBy, 'lastMs'>, nowMs: number): number =>
  lastMs === undefined ? nowMs : Math.min(nowMs, lastMs + countedWithinMs);

/** When a cause ended; undefined while it is seen and something happens. */
const overMs = (known: ExplainedBy, isSeen: boolean, nowMs: number): number | undefined =>
  known.endMs ?? (isSeen && nowMs < (known.lastMs ?? nowMs) + leastPauseMs ? undefined : endOf(known, nowMs));

export function createAftermath(): Aftermath {
  /** The cause of each problem, by the line of the problem. */
  let remembered: ReadonlyMap<string, ExplainedBy> = new Map();
  /** The problems of the last report, and those of them that were causes. */
  let lines: ReadonlySet<string> = new Set();
  let causes: readonly Begun[] = [];
  /** The causes that ended so recently that their effects may not have been read yet. */
  let ended: readonly { cause: Begun; endMs: number }[] = [];

  /**
   * The cause, over by now, of a problem that is seen for the first time: the rate of a short outage exceeds its limit only after
   * the outage.
   */
  const lateCauseOf = (effect: Begun, nowMs: number, facts: StatusFacts): ExplainedBy | undefined => {
    const found = ended.find(
      ({ cause, endMs }) =>
        (effect.newSinceMs ?? effect.sinceMs) < endMs + leastPauseMs &&
        looksBack(effect, endMs, nowMs) &&
        wouldExplain(cause, effect, facts),
    );
    if (!found) return undefined;
    const { cause, endMs } = found;
    return { kind: cause.kind, subject: cause.subject, line: lineOf(cause), endMs };
  };

  /** The causes that ended, if a cause that lasts explains them. The end of a process is counted after its checks pass again. */
  const explainedLate = (facts: StatusFacts): string[] =>
    ended.flatMap(({ cause: over }) => {
      const isCause = (cause: Begun) =>
        (severityOf(cause) === 'critical' || severityOf(over) === 'warning') &&
        cause.sinceMs <= over.sinceMs + countedWithinMs &&
        wouldExplain(cause, over, facts);
      return causes.some(isCause) ? [lineOf(over)] : [];
    });

  return {
    apart(found) {
      const { endMs = Number.POSITIVE_INFINITY } = remembered.get(lineOf(found)) ?? {};
      const { newSinceMs: untilMs = 0 } = found;
      // What is first seen until then is from the cause, too.
      const fromMs = endMs + leastPauseMs;
      return untilMs >= fromMs ? { ...found, pause: { fromMs, untilMs } } : found;
    },
    timesOf(all, { nowMs, facts, isUnknown, goesOn }) {
      const seen = new Set(all.map(lineOf));
      ended = [...ended, ...causes.map((cause) => ({ cause, endMs: endOf(cause, nowMs) }))]
        .filter(({ cause, endMs }) => !seen.has(lineOf(cause)) && nowMs - endMs < rateMs)
        .sort((a, b) => placeOf(a.cause.kind) - placeOf(b.cause.kind))
        .slice(0, mostCauses);
      const late = all.flatMap((one): [string, ExplainedBy][] => {
        const cause = lines.has(lineOf(one)) ? undefined : lateCauseOf(one, nowMs, facts);
        return cause ? [[lineOf(one), cause]] : [];
      });
      const kept = [...remembered].filter(([line]) => isUnknown(line) || goesOn(line));
      remembered = new Map([...late, ...kept]);
      return (cause, effect) => {
        const shownMs = shownSinceMs(effect);
        const known = remembered.get(lineOf(effect));
        if (!known) return isCauseAt(cause, shownMs);
        const isOfKnown = known.line === lineOf(cause);
        const endMs = overMs(known, seen.has(known.line) || isUnknown(known.line), nowMs);
        if (endMs === undefined) return isOfKnown || isCauseAt(cause, shownMs);
        // Nothing has happened since the end of the cause, so that nothing else can be the reason.
        if (effect.lastMs !== undefined && effect.lastMs < endMs + leastPauseMs) return isOfKnown;
        // While the problem only looks back, it is not known whether it lasts at all. Any problem that is seen may explain it.
        return looksBack(effect, endMs, nowMs) || isCauseAt(cause, Math.max(shownMs, endMs));
      };
    },
    of(all, { nowMs, facts, isUnknown }) {
      const seen = new Set(all.map(({ found }) => lineOf(found)));
      const roots = new Map(
        all.filter(({ causedBy }) => causedBy === undefined).map((one) => [idOf(one.found), one]),
      );
      const isKept = (line: string) => isUnknown(line) || !seen.has(line);
      const next = new Map([...remembered].filter(([line]) => isKept(line)));
      const left = new Set<Explained>();
      for (const one of roots.values()) {
        const line = lineOf(one.found);
        const known = remembered.get(line);
        // If the problem has a cause again, or its earlier cause is now a cause itself, nothing has ended.
        const endMs = known && overMs(known, roots.has(idOf(known)), nowMs);
        if (!known || endMs === undefined) continue;
        // Nothing shows the problem any more, and the cause that it had is over.
        if (one.found.unread || looksBack(one.found, endMs, nowMs)) left.add(one);
        next.set(line, { ...known, endMs });
      }
      for (const one of all) {
        const cause = roots.get(one.causedBy ?? '');
        // The reason why a problem cannot be read is not the reason why it exists.
        if (!cause || one.found.unread?.wasCause) continue;
        const line = lineOf(one.found);
        if (left.has(cause)) {
          left.add(one);
          next.set(line, next.get(lineOf(cause.found))!);
        } else {
          const { kind, subject, lastMs } = cause.found;
          next.set(line, { kind, subject, line: lineOf(cause.found), lastMs });
        }
      }
      remembered = next;
      lines = seen;
      causes = [...roots.values()].flatMap((one) => (left.has(one) ? [] : [one.found]));
      const over = [...left].map(({ found }) => next.get(lineOf(found))!);
      return { left, over, explainedBy: next, explainedLate: explainedLate(facts) };
    },
    clockJumped(byMs) {
      ended = ended.map(({ cause, endMs }) => ({ cause, endMs: endMs + byMs }));
      remembered = new Map(
        [...remembered].map(([line, one]) => [
          line,
          one.endMs === undefined ? one : { ...one, endMs: one.endMs + byMs },
        ]),
      );
    },
    restore(lasting) {
      remembered = new Map(
        lasting.flatMap(({ line, explainedBy }) =>
          // The kind may be from another version of the agent.
          explainedBy && isKind(explainedBy.kind) ? [[line, explainedBy] as const] : [],
        ),
      );
    },
  };
}
