import type { Clock } from '../../core/ports.ts';
import type { LineBook } from './lines/book.ts';
import type { Turns } from './turns.ts';

/** How many times a line's age is looked at until it expires: it lives up to a quarter longer than asked. */
const rounds = 4;

/** Forgets lines that were not heard of for `expireMs`. Returns the stop. */
export function startExpiry(
  book: LineBook,
  expireMs: number,
  { clock, turns }: { clock: Clock; turns: Turns },
): () => void {
  let cancel = (): void => {};
  const sweep = () => {
    let id = 0;
    turns.sometime(() => {
      for (const stop = id + 64; id < stop && id < book.end; id++) {
        const sent = book.sentOf(id);
        if (sent !== undefined && book.round - sent.round > rounds) book.forget(id);
      }
      return id >= book.end;
    });
  };
  const wait = () => {
    cancel = clock.after(expireMs / rounds, () => {
      book.round += 1;
      sweep();
      wait();
    });
  };
  wait();
  return () => cancel();
}
