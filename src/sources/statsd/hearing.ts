import type { Clock } from '../../core/ports.ts';
import type { Words } from '../../core/words.ts';
import type { LineBook } from './lines/book.ts';
import type { Sending } from './lines/sent.ts';
import type { Turns } from './turns.ts';

/** Learns from the names a sender uses which words it speaks, and follows when that is settled. */
export interface Hearing {
  name(name: string): void;
  stop(): void;
}

export interface HearingDeps {
  words: Words;
  book(): LineBook;
  sending: Sending;
  turns: Turns;
  clock: Clock;
}

const delayMs = 1000;
/** Names beyond are not heard: no product has so many, and each costs memory for good. */
const maxNames = 10_000;

export function createHearing({ words, book, sending, turns, clock }: HearingDeps): Hearing {
  const names = new Set<string>();
  let cancel: (() => void) | undefined;

  const reopen = (reworded: ReadonlySet<string>) => {
    let id = 0;
    turns.sometime(() => {
      for (const stop = id + 16; id < stop && id < book().end; id++) {
        const sent = book().sentOf(id);
        if (sent !== undefined && reworded.has(sent.line.name)) sending.reopen(sent);
      }
      return id >= book().end;
    });
  };

  const listen = () => {
    cancel = undefined;
    const reworded = words.hear(new Set(names));
    if (reworded.size > 0) reopen(reworded);
  };

  return {
    name(name) {
      if (names.has(name) || names.size >= maxNames) return;
      names.add(name);
      cancel ??= clock.after(delayMs, listen);
    },
    stop: () => cancel?.(),
  };
}
