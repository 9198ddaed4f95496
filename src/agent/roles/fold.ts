/** What tells of a restart; each start-up line of the log is a kind of its own: a start writes several. */
export type EvidenceKind = 'health' | 'scrape' | `log ${string}`;

/** Evidence that came close together. */
export interface Episode {
  lastMs: number;
  counts: Partial<Record<EvidenceKind, number>>;
  /** Starts that are no restarts: 1 if the role was seen for the first time. */
  firstStarts: 0 | 1;
  restarts: number;
}

/** Evidence of one restart comes within this: a few intervals of the slowest that looks. */
export const episodeQuietMs = 120_000;

/**
 * Takes one piece of evidence; returns the episode it belongs to and how many restarts it adds. Each kind sees a
 * restart at most once, so an episode has had as many as the kind that saw most: of two that no single kind saw
 * both, one is lost. The first start of a role that nobody knew is none.
 */
export function foldEvidence(
  before: Episode | undefined,
  kind: EvidenceKind,
  { nowMs, isKnown }: { nowMs: number; isKnown: boolean },
): { episode: Episode; more: number } {
  // The wall clock may have been set back.
  const goesOn = before && Math.abs(nowMs - before.lastMs) <= episodeQuietMs;
  const last: Episode = goesOn
    ? before
    : { lastMs: nowMs, counts: {}, firstStarts: isKnown ? 0 : 1, restarts: 0 };
  const counts = { ...last.counts, [kind]: (last.counts[kind] ?? 0) + 1 };
  const restarts = Math.max(0, ...Object.values(counts).map((count) => count - last.firstStarts));
  return { episode: { ...last, lastMs: nowMs, counts, restarts }, more: restarts - last.restarts };
}
