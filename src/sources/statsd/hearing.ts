import type { Clock } from '../../core/ports.ts';
import type { VocabularyDetector } from '../../core/vocabulary.ts';
import type { LineBook } from './lines/book.ts';
import type { Sending } from './lines/sent.ts';
import type { Turns } from './turns.ts';

/** Learns from the names a sender uses which words it speaks, and follows when that is settled. */
export interface Hearing {
  name(name: string): void;
  /** Whether all names so far are decided. */
  isSettled(): boolean;
  stop(): void;
}

export interface HearingDeps {
  words: VocabularyDetector;
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

  /** Ids of known lines of these names, those of one series together. */
  const bySeries = (reworded: ReadonlySet<string>): number[][] => {
    const groups = new Map<string, number[]>();
    for (let id = 0; id < book().end; id++) {
      const sent = book().sentOf(id);
      if (sent === undefined || !reworded.has(sent.line.name)) continue;
      const { type, name, tags } = sent.line;
      const key = JSON.stringify([type, name, Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))]);
      const group = groups.get(key);
      if (group) group.push(id);
      else groups.set(key, [id]);
    }
    return [...groups.values()];
  };
  const reopenAll = (ids: readonly number[]) =>
    sending.reopen(ids.map((id) => book().sentOf(id)).filter((sent) => sent !== undefined));

  const reopen = (reworded: ReadonlySet<string>) => {
    book().forgetRefused();
    const groups = bySeries(reworded);
    // At once: a line that came meanwhile would join the old series. Few series have several lines.
    for (const group of groups) if (group.length > 1) reopenAll(group);
    const alone = groups.filter((group) => group.length === 1);
    let next = 0;
    turns.sometime(() => {
      for (const stop = next + 16; next < stop && next < alone.length; next++) reopenAll(alone[next]!);
      return next >= alone.length;
    });
  };

  const listen = () => {
    cancel = undefined;
    const reworded = words.detect(new Set(names));
    if (reworded.size > 0) reopen(reworded);
  };

  return {
    name(name) {
      if (names.has(name) || names.size >= maxNames) return;
      names.add(name);
      cancel ??= clock.after(delayMs, listen);
    },
    isSettled: () => cancel === undefined,
    stop: () => cancel?.(),
  };
}
