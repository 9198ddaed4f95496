export interface Turns<T> {
  /** The next turn that has not shut its door; it starts one if there is none. */
  join(): Promise<T>;
  /** Resolves when no turn runs or waits; never rejects. */
  idle(): Promise<void>;
}

/**
 * Runs `run` one at a time. Callers share a run until it calls `shut`; those that come later share the next,
 * so that one runs and one waits at most.
 */
export function createTurns<T>(run: (shut: () => void) => Promise<T>): Turns<T> {
  let open: Promise<T> | undefined;
  let last: Promise<void> = Promise.resolve();

  const start = (): Promise<T> => {
    const shut = () => {
      if (open === turn) open = undefined;
    };
    const turn = last.then(() => run(shut));
    last = turn.then(shut, shut);
    open = turn;
    return turn;
  };
  return { join: () => open ?? start(), idle: () => last };
}
