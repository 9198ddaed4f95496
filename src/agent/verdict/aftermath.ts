import type { Evidence } from '../report.ts';
import { type Explained, type IsInTime, isEarlyEnough } from './causes.ts';
import { lookBackMs } from './conditions.ts';
import {
  type Begun,
  type ExplainedBy,
  idOf,
  isChecked,
  isFatal,
  lineOf,
  type OpenProblem,
  shownSinceMs,
} from './found.ts';
import { isKind } from './kinds.ts';

interface Left {
  /** What of it only looks back at causes that are over, or that a new agent has not checked yet. */
  left: ReadonlySet<Explained>;
  /** Those causes. */
  over: readonly ExplainedBy[];
  unchecked: readonly ExplainedBy[];
  /** What explains each line of problems. */
  explainedBy: ReadonlyMap<string, ExplainedBy>;
}

/** Whether nothing can be said about a line yet, as after a restart of the agent. */
type IsUnknown = (line: string) => boolean;

/** What causes leave behind: a rate still has the errors of an outage that is over, a check has not run since its end. */
interface Aftermath {
  /**
   * Which problems that are seen now may be causes of which by their times. What outlasts its cause may have a cause that
   * began when the first one ended; a cause that is back explains what it explained before. `goesOn`: whether a problem that
   * is seen now, or soon, is the one that was seen before.
   */
  timesOf(
    all: readonly Begun[],
    nowMs: number,
    isUnknown: IsUnknown,
    goesOn: (line: string) => boolean,
  ): IsInTime;
  /** Takes what is seen now. */
  of(all: readonly Explained[], nowMs: number, isUnknown: IsUnknown): Left;
  /** The wall clock has jumped: what is over has been for as long as before. */
  clockJumped(byMs: number): void;
  /** Takes what explained the problems that lasted when the agent ended. */
  restore(lasting: readonly OpenProblem[]): void;
}

/** Whether evidence of a problem is all from before a moment, or from a window that reaches behind it. */
function looksBack({ kind, evidence, pause }: Begun, endMs: number, nowMs: number): boolean {
  const isNewer = ({ at = '' }: Evidence) => Date.parse(at) >= endMs;
  // The end of a process after that is one of its own, and so is what ended and began again.
  if (evidence.some((one) => isFatal(one) && isNewer(one))) return false;
  if (pause && pause.untilMs >= endMs) return false;
  const spanMs = lookBackMs(kind);
  if (spanMs > 0) return nowMs - endMs < spanMs;
  const check = evidence.find(({ source }) => source === 'probe');
  return check !== undefined && !isNewer(check);
}

export function createAftermath(): Aftermath {
  /** What explained each line of problems, by the line that is explained. */
  let remembered: ReadonlyMap<string, ExplainedBy> = new Map();

  return {
    timesOf(all, nowMs, isUnknown, goesOn) {
      remembered = new Map([...remembered].filter(([line]) => isUnknown(line) || goesOn(line)));
      const lines = new Set(all.map(lineOf));
      return (cause, effect) => {
        const shownMs = shownSinceMs(effect);
        const known = remembered.get(lineOf(effect));
        if (!known) return isEarlyEnough(cause, shownMs);
        const lasts = known.endMs === undefined && (lines.has(known.line) || isUnknown(known.line));
        if (lasts) return known.line === lineOf(cause) || isEarlyEnough(cause, shownMs);
        const { endMs = nowMs } = known;
        // Whether it goes on at all is not known while it only looks back: whatever is there may explain it.
        return looksBack(effect, endMs, nowMs) || isEarlyEnough(cause, Math.max(shownMs, endMs));
      };
    },
    of(all, nowMs, isUnknown) {
      const seen = new Set(all.map(({ found }) => lineOf(found)));
      const causes = new Map(
        all.filter(({ causedBy }) => causedBy === undefined).map((one) => [idOf(one.found), one]),
      );
      const isKept = (line: string) => isUnknown(line) || !seen.has(line);
      const next = new Map([...remembered].filter(([line]) => isKept(line)));
      const left = new Set<Explained>();
      for (const one of causes.values()) {
        const line = lineOf(one.found);
        const known = remembered.get(line);
        // What has a cause of its own again, or is the only thing left of it, ended nothing.
        if (!known || causes.has(idOf(known))) continue;
        if (known.endMs === undefined && isUnknown(known.line)) {
          next.set(line, known);
          // A check takes seconds; whether values are above their limits takes minutes.
          if (isChecked(known.line)) left.add(one);
          continue;
        }
        const { endMs = nowMs } = known;
        if (looksBack(one.found, endMs, nowMs)) left.add(one);
        next.set(line, { ...known, endMs });
      }
      for (const one of all) {
        const cause = causes.get(one.causedBy ?? '');
        // Why a problem cannot be read is not why it is there.
        if (!cause || one.found.unread?.wasCause) continue;
        const line = lineOf(one.found);
        if (left.has(cause)) {
          left.add(one);
          next.set(line, next.get(lineOf(cause.found))!);
        } else {
          const { kind, subject } = cause.found;
          next.set(line, { kind, subject, line: lineOf(cause.found) });
        }
      }
      remembered = next;
      const behind = [...left].map(({ found }) => next.get(lineOf(found))!);
      const over = behind.filter(({ endMs }) => endMs !== undefined);
      return { left, over, unchecked: behind.filter((one) => !over.includes(one)), explainedBy: next };
    },
    clockJumped(byMs) {
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
          // Its kind may be one of another version.
          explainedBy && isKind(explainedBy.kind) ? [[line, explainedBy] as const] : [],
        ),
      );
    },
  };
}
