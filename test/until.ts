export interface Patience {
  /** Pause between two polls; unless told it grows from 1 to 25 ms with the time that passed. */
  everyMs?: number;
  /**
   * Ends a test that hangs, and expects nothing: a busy machine may need many times what an idle one does. 240 s unless
   * told.
   */
  withinMs?: number;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Polls `fact` until it gives neither undefined nor false, and returns that. A poll that throws is repeated. */
export async function until<T>(
  what: string,
  fact: () => Promise<T | undefined | false> | T | undefined | false,
  { everyMs, withinMs = 240_000 }: Patience = {},
): Promise<T> {
  const startMs = performance.now();
  for (;;) {
    let cause: unknown;
    try {
      const value = await fact();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      cause = error;
    }
    const passedMs = performance.now() - startMs;
    if (passedMs > withinMs)
      throw new Error(`not within ${withinMs / 1000} s: ${what}${cause ? `; last: ${cause}` : ''}`, {
        cause,
      });
    await pause(everyMs ?? Math.min(25, 1 + passedMs / 40));
  }
}

/** Polls until the answer is as wanted, and returns it. */
export async function pollUntil<T>(
  poll: () => Promise<T> | T,
  isWanted: (answer: T) => boolean,
  patience?: Patience,
): Promise<T> {
  const wanted = async () => {
    const answer = await poll();
    if (!isWanted(answer)) throw new Error(`still ${JSON.stringify(answer)?.slice(0, 500)}`);
    return { answer };
  };
  return (await until('the answer is as wanted', wanted, patience)).answer;
}
