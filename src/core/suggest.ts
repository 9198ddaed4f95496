/** The number of edits (insert, delete, replace, swap of neighbours) between two words. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const cost = a[row - 1] === b[column - 1] ? 0 : 1;
      let least = Math.min(previous[column]! + 1, current[column - 1]! + 1, previous[column - 1]! + cost);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        least = Math.min(least, before[column - 2]! + 1);
      }
      current.push(least);
    }
    before = previous;
    previous = current;
  }
  return previous[b.length]!;
}

/** Longer words are not typing errors; the limit bounds the work for any input. */
const longest = 64;

/**
 * The known word that a mistyped one most likely means: at most a third of its letters differ, ignoring case, or it is
 * the start of exactly one known word. Undefined if there is none.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length === 0 || word.length > longest) return undefined;
  const folded = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.floor(Math.max(folded.length, 3) / 3) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - folded.length) >= bestDistance) continue;
    const edits = distance(folded, candidate.toLowerCase());
    if (edits < bestDistance) [best, bestDistance] = [candidate, edits];
  }
  if (best !== undefined || folded.length < 3) return best;
  const begun = known.filter((candidate) => candidate.toLowerCase().startsWith(folded));
  return begun.length === 1 ? begun[0] : undefined;
}
