import type { StatusFacts } from '../report.ts';
import type { Explained } from './causes.ts';
import { type Begun, idOf, lineOf, shownSinceMs } from './found.ts';
import { probeNamed } from './named.ts';

/** How much earlier than its first evidence a problem may have begun, if no check shows it: pages are read this often. */
const usualIntervalMs = 15_000;

/** The earliest moment at which a problem can have begun: the check before the check that found the problem had passed. */
function earliestMs({ about, reason = '', reasonsMs, sinceMs }: Begun, facts: StatusFacts): number {
  const check = probeNamed(facts, about.probe);
  return Math.max(sinceMs - (check?.intervalMs ?? usualIntervalMs), reasonsMs?.[reason] ?? 0);
}

/**
 * What problems that are one problem for people have in common: a store is down with its databases, any of which may be the cause
 * that is shown.
 */
const wholeOf = ({ kind, subject, about: { store } }: Begun): string =>
  store === undefined ? `${kind} ${subject}` : `${kind} of ${store}`;

/** Whether an effect comes and goes with the events of its cause: the check of a role that crashes fails now and then. */
const comesAndGoes = (cause: Begun, effect: Begun): boolean =>
  cause.lastMs !== undefined && cause.about.role !== undefined && cause.about.role === effect.about.role;

/**
 * Puts the starts of causes and effects that are new in order: a cause has begun when its first effect begins. Checks find the
 * problems in any order, so a cause begins with its first effect, if the checks of the cause allow that, and an effect that seems
 * to be a little older than its cause begins with the cause. Recorded starts stay (`isNew`).
 */
export function startsInOrder(
  all: readonly Explained[],
  isNew: (line: string) => boolean,
  facts: StatusFacts,
): Explained[] {
  const roots = new Map<string, Begun>();
  for (const { found, causedBy } of all) if (causedBy === undefined) roots.set(idOf(found), found);
  const startMs = new Map([...roots].map(([id, { sinceMs }]) => [id, sinceMs]));
  const byWhole = new Map<string, Begun[]>();
  for (const root of roots.values())
    byWhole.set(wholeOf(root), [...(byWhole.get(wholeOf(root)) ?? []), root]);
  for (const { found, causedBy = '' } of all) {
    const cause = roots.get(causedBy);
    if (!cause || found.unread) continue;
    for (const root of byWhole.get(wholeOf(cause))!) {
      const id = idOf(root);
      const effectMs = comesAndGoes(root, found) ? found.sinceMs : shownSinceMs(found);
      if (isNew(lineOf(root)) && effectMs >= earliestMs(root, facts))
        startMs.set(id, Math.min(effectMs, startMs.get(id)!));
    }
  }
  const startOf = ({ found, causedBy }: Explained): number => {
    if (roots.get(idOf(found)) === found) return startMs.get(idOf(found))!;
    const causeMs = startMs.get(causedBy ?? '') ?? 0;
    const mayMove = causeMs - found.sinceMs <= usualIntervalMs && isNew(lineOf(found));
    return mayMove ? Math.max(causeMs, found.sinceMs) : found.sinceMs;
  };
  return all.map((one) => ({ ...one, found: { ...one.found, sinceMs: startOf(one) } }));
}
