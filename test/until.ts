interface Patience {
  /**
   * The pause between two polls. By default it grows from 1 to 100 ms with the time that has passed, and is at least twice the
   * duration of a poll, so that waiting leaves the processor to what is waited for.
   */
  everyMs?: number;
  /**
   * A limit that ends a test that hangs, and asserts nothing: a busy machine may need many times the time of an idle one.
   * Default: 240 s.
   */
  withinMs?: number;
}

let noted = (_what: string): void => {};
/**
 * Sets a callback for facts: a test that has waited for a fact has asserted something, and the set-up of a test run counts it.
 */
export function noteFacts(note: (what: string) => void): void {
  noted = note;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * A pause of random length, for a fault that may strike at any moment, and for a writer that leaves the processor to others.
 * Nothing may depend on what happens in it: to wait for something, use `until`.
 */
export const anyMoment = (random: () => number, mostMs: number): Promise<unknown> => pause(random() * mostMs);

/** Polls `fact` until it returns neither undefined nor false, and returns the result. A poll that throws is repeated. */
export async function until<T>(
  what: string,
  fact: () => Promise<T | undefined | false> | T | undefined | false,
  { everyMs, withinMs = 240_000 }: Patience = {},
): Promise<T> {
  const startMs = performance.now();
  for (;;) {
    const pollMs = performance.now();
    let cause: unknown;
    try {
      const value = await fact();
      if (value !== undefined && value !== false) {
        noted(what);
        return value;
      }
    } catch (error) {
      cause = error;
    }
    const nowMs = performance.now();
    const passedMs = nowMs - startMs;
    if (passedMs > withinMs)
      throw new Error(`not within ${withinMs / 1000} s: ${what}${cause ? `; last: ${cause}` : ''}`, {
        cause,
      });
    const patientMs = Math.max(Math.min(100, 1 + passedMs / 40), Math.min(500, 2 * (nowMs - pollMs)));
    await pause(everyMs ?? patientMs);
  }
}

/** Polls until the answer is wanted, and returns it. */
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
