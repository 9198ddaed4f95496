import type { Explained } from './causes.ts';
import { lookBackMs } from './conditions.ts';
import { type Begun, idOf, lineOf } from './found.ts';

/** What causes leave behind: a rate still has the errors of an outage that is over, a check has not run since its end. */
interface Aftermath {
  /** Takes what is seen now. Returns what of it only looks back at causes that are over, with those causes. */
  of(all: readonly Explained[], nowMs: number): { left: ReadonlySet<Explained>; over: readonly Begun[] };
}

/** What explained a problem last, and since when it no longer does. */
interface Remembered {
  cause: Begun;
  endMs?: number;
}

/** Whether evidence of a problem is all from before a moment, or from a window that reaches behind it. */
function looksBack({ kind, evidence }: Begun, endMs: number, nowMs: number): boolean {
  const isNewer = ({ at = '' }: { at?: string | undefined }) => Date.parse(at) >= endMs;
  // The end of a process after that is one of its own.
  if (evidence.some((one) => one.source === 'log' && one.text.startsWith('fatal') && isNewer(one)))
    return false;
  const spanMs = lookBackMs(kind);
  if (spanMs > 0) return nowMs - endMs < spanMs;
  const check = evidence.find(({ source }) => source === 'probe');
  return check !== undefined && !isNewer(check);
}

export function createAftermath(): Aftermath {
  /** By the lines of what is explained. */
  let remembered = new Map<string, Remembered>();

  return {
    of(all, nowMs) {
      const causes = new Map(
        all.filter(({ causedBy }) => causedBy === undefined).map((one) => [idOf(one.found), one]),
      );
      const next = new Map<string, Remembered>();
      const left = new Set<Explained>();
      for (const one of causes.values()) {
        const line = lineOf(one.found);
        const known = remembered.get(line);
        // What has a cause of its own again, or is the only thing left of it, ended nothing.
        if (!known || causes.has(idOf(known.cause))) continue;
        const { cause, endMs = nowMs } = known;
        if (!looksBack(one.found, endMs, nowMs)) continue;
        left.add(one);
        next.set(line, { cause, endMs });
      }
      for (const one of all) {
        const cause = causes.get(one.causedBy ?? '');
        if (!cause) continue;
        const line = lineOf(one.found);
        if (left.has(cause)) {
          left.add(one);
          next.set(line, next.get(lineOf(cause.found))!);
        } else next.set(line, { cause: cause.found });
      }
      remembered = next;
      return { left, over: [...left].map(({ found }) => next.get(lineOf(found))!.cause) };
    },
  };
}
