import { joinByPair, type OfPair } from './by-pair.ts';
import type { Told } from './found.ts';
import { createRises } from './rises.ts';

export interface LastApplied {
  /** The times that were known before and those of the pairs that had a task applied since the look before. */
  after(before: readonly OfPair[], applied: readonly Told[], nowMs: number): OfPair[];
}

/**
 * When tasks were last applied, ms since the epoch: the moment of the look that found a total risen since the look
 * before. A role that began anew has applied nothing that is known to be new.
 */
export function createLastApplied(): LastApplied {
  const progress = createRises();
  return {
    after(before, applied, nowMs) {
      const rises = progress.since(applied);
      const risen = applied.filter(({ series }) => {
        const rise = rises.get(series);
        return rise !== undefined && !rise.anew && rise.by > 0;
      });
      const now = risen.map(({ pair }) => ({ pair, value: nowMs }));
      return joinByPair(
        [...before, ...now],
        ({ value }) => value,
        (_, later) => later,
      );
    },
  };
}

/** The times that an earlier look left. */
export function lastAppliedIn(recalled: unknown): OfPair[] {
  if (!Array.isArray(recalled)) return [];
  return recalled.flatMap((entry) => {
    const [source, target, value] = Array.isArray(entry) ? entry : [];
    const isWhole = typeof source === 'string' && typeof target === 'string' && Number.isFinite(value);
    return isWhole ? [{ pair: { source, target }, value }] : [];
  });
}

/** What `lastAppliedIn` reads. */
export function remembered(lastApplied: readonly OfPair[]): unknown {
  return lastApplied.map(({ pair: { source, target }, value }) => [source, target, value]);
}
