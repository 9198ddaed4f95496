/** The last few of something, oldest first. */
export interface Ring<T> {
  push(one: T): void;
  all(): readonly T[];
}

export function createRing<T>(size: number): Ring<T> {
  let kept: T[] = [];
  return {
    push(one) {
      kept.push(one);
      if (kept.length > size * 2) kept = kept.slice(-size);
    },
    all: () => (size > 0 ? kept.slice(-size) : []),
  };
}
