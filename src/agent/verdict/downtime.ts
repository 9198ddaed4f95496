import type { StatusFacts } from '../report.ts';
import { isCauseAt } from './causes.ts';
import { leastPauseMs } from './condition.ts';
import { longestPauseMs } from './conditions.ts';
import { type Begun, dependentReasons, type Found, isOwnReason, lineOf } from './found.ts';
import { processFaults } from './kinds.ts';
import { isPassing } from './named.ts';

const isOfProcess: ReadonlySet<string> = new Set(processFaults);

/**
 * A role that is down within this time after its process ended is down because of that end. A loop may wait longer between two
 * starts.
 */
const downWithinMs = (kind: string): number => (kind === 'crash_loop' ? longestPauseMs(kind) : leastPauseMs);

/**
 * Extends a problem about the ends of a process while the role is down. `last`: the same problem in the last report; `all`: what
 * is wrong now.
 */
export function untilBack<T extends Found>(
  found: T,
  all: readonly Found[],
  last: Begun | undefined,
  { facts, nowMs }: { facts: StatusFacts; nowMs: number },
): T {
  const {
    kind,
    lastMs,
    about: { role },
  } = found;
  if (lastMs === undefined || !isOfProcess.has(kind)) return found;
  const since = ({ sinceMs = nowMs }: Found) => sinceMs;
  const isDown = (one: Found) =>
    isOfProcess.has(one.kind) &&
    one.about.role === role &&
    one.lastMs === undefined &&
    !dependentReasons.has(one.reason ?? '') &&
    !isOwnReason(one.reason ?? '') &&
    !isPassing(role, facts) &&
    // A new agent has not seen the beginning.
    isCauseAt({ ...found, sinceMs: last?.sinceMs ?? since(found) }, since(one)) &&
    since(one) <= lastMs + downWithinMs(kind);
  const down = all.find(isDown);
  // The role may have been down before. The wall clock may have been set back.
  const earlierMs = last?.lastMs ?? 0;
  const untilMs = earlierMs <= nowMs ? Math.max(lastMs, earlierMs) : lastMs;
  if (!down) return { ...found, lastMs: untilMs };
  const beforeMs = last?.down ? Math.max(lastMs, last.down.lastMs) : untilMs;
  return { ...found, lastMs: nowMs, down: { line: lineOf(down), lastMs: beforeMs } };
}
