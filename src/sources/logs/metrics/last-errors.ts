import { redactedMessage } from '../../../core/redacted.ts';
import { type Fields, type Slots, textOf } from '../lines/fields.ts';

/** An entry of level error or fatal. */
export interface LoggedError {
  /** When the entry was read, wall clock, ms. */
  atMs: number;
  service: string;
  level: string;
  logger: string;
  /** The message, redacted, at most 300 characters. */
  msg: string;
  /** Identifiers of the workflow and of its run, if the entry has them. They are never labels. */
  workflow?: string;
  run?: string;
}

/** Notes the errors of one service's entries. */
interface ErrorNotes {
  /** Stores an entry; does nothing once it has stored 16 entries of its level within a second. */
  note(service: string, fields: Fields): void;
  /** Called after each chunk of a file. */
  flush(): void;
}

const longestMessage = 300;
const longestLabel = 80;
/** How many entries of each level are stored for each service, and for how many services. */
const wordsPerLevel = 3;
const mostServices = 100;
/**
 * Bounds the cost of a log full of errors: only this many entries per service, level and second become texts. A flood of errors
 * does not hide the fatal entry that ends it.
 */
const mostPerSecond = 16;

/** The fields of an entry that are stored, beside its level. */
export const errorFields = ['logger', 'msg', 'error', 'wf-id', 'wf-run-id'] as const;

const cut = (text: string, longest: number) =>
  text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
/** Copies the text: a slice would hold the whole line in memory. */
const copied = (text: string) => Buffer.from(text).toString();

/** The newest entries of level error and fatal of all services, for the status page. */
export interface LastErrors {
  /** All stored entries, newest first. */
  all(): readonly LoggedError[];
  /**
   * The newest few entries of each service: entries of level fatal come before entries of level error, newest first within a
   * level.
   */
  byService(): readonly { service: string; entries: readonly LoggedError[] }[];
  /** Creates the notes for entries whose fields have these slots. */
  of(slots: Slots, levelKey: string): ErrorNotes;
}

/** Creates the list. `size` is how many entries it holds. `nowMs` is the wall clock. */
export function createLastErrors(nowMs: () => number, size = 20): LastErrors {
  let kept: LoggedError[] = [];
  /** Entries by service and level, oldest first. */
  const words = new Map<string, { fatal: LoggedError[]; error: LoggedError[] }>();
  const noteWord = (entry: LoggedError) => {
    let own = words.get(entry.service);
    if (!own && words.size >= mostServices) return;
    own ??= { fatal: [], error: [] };
    words.set(entry.service, own);
    const level = entry.level === 'fatal' ? 'fatal' : 'error';
    own[level] = [...own[level], entry].slice(-wordsPerLevel);
  };
  return {
    all: () => kept.slice(-size).reverse(),
    byService: () =>
      [...words].map(([service, { fatal, error }]) => ({
        service,
        entries: [...fatal.toReversed(), ...error.toReversed()],
      })),
    of(slots, levelKey) {
      const level = slots.of(levelKey);
      const [logger, msg, error, workflow, run] = errorFields.map((name) => slots.of(name));
      const idIn = (fields: Fields, slot: number): string | undefined => {
        const text = textOf(fields, slot);
        return text ? copied(cut(redactedMessage(cut(text, 4 * longestLabel)), longestLabel)) : undefined;
      };
      const full = { fatal: mostPerSecond, error: mostPerSecond };
      let more = { ...full };
      let beganMs = nowMs();
      return {
        note(service, fields) {
          const levelText = textOf(fields, level) ?? '';
          const kind = levelText === 'fatal' ? 'fatal' : 'error';
          if (more[kind] === 0) return;
          more[kind]--;
          const text = [msg!, error!].map((slot) => textOf(fields, slot)).filter(Boolean);
          const ids = { workflow: idIn(fields, workflow!), run: idIn(fields, run!) };
          const entry: LoggedError = {
            atMs: nowMs(),
            service,
            level: levelText,
            logger: copied(cut(textOf(fields, logger!) ?? '', longestLabel)),
            // The text is cut before it is redacted, which bounds the cost of a message of a megabyte. A secret that is cut in
            // two is still found.
            msg: copied(cut(redactedMessage(cut(text.join(': '), 4 * longestMessage)), longestMessage)),
            ...(ids.workflow !== undefined && { workflow: ids.workflow }),
            ...(ids.run !== undefined && { run: ids.run }),
          };
          noteWord(entry);
          kept.push(entry);
          if (kept.length > 2 * size) kept = kept.slice(-size);
        },
        flush() {
          if (more.error === mostPerSecond && more.fatal === mostPerSecond) return;
          const atMs = nowMs();
          // The wall clock may have been set back.
          if (Math.abs(atMs - beganMs) < 1000) return;
          beganMs = atMs;
          more = { ...full };
        },
      };
    },
  };
}
