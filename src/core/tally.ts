import type { Labels } from './model.ts';
import type { RefusalReason } from './reasons.ts';

/** A series that was refused, as the status page lists it. */
export interface Refusal {
  readonly family: string;
  readonly reason: RefusalReason;
  /** As its sender calls it. */
  readonly rawName: string;
  readonly labels: Labels;
  readonly service: string;
  readonly atMs: number;
}

export interface RefusalCount {
  readonly family: string;
  readonly reason: RefusalReason;
  readonly count: number;
}

/** Counts refusals: by family and reason, the families beyond a bound together as `other`. */
export interface Tally {
  refused(refusal: Omit<Refusal, 'atMs'>): void;
  counts(): Iterable<RefusalCount>;
  /** The newest refusals, newest last. */
  latest(): readonly Refusal[];
}

const maxFamilies = 100;
const maxLatest = 100;

export function createTally(nowMs: () => number): Tally {
  const families = new Map<string, Map<RefusalReason, number>>();
  const latest: Refusal[] = [];

  const reasonsOf = (family: string): Map<RefusalReason, number> => {
    const name = families.has(family) || families.size < maxFamilies ? family : 'other';
    const reasons = families.get(name) ?? new Map<RefusalReason, number>();
    families.set(name, reasons);
    return reasons;
  };

  return {
    refused(refusal) {
      const reasons = reasonsOf(refusal.family);
      reasons.set(refusal.reason, (reasons.get(refusal.reason) ?? 0) + 1);
      latest.push({ ...refusal, atMs: nowMs() });
      if (latest.length > maxLatest) latest.shift();
    },
    *counts() {
      for (const [family, reasons] of families) {
        for (const [reason, count] of reasons) yield { family, reason, count };
      }
    },
    latest: () => latest,
  };
}
