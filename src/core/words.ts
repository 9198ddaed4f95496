import type { Translate } from './asking.ts';
import { recognise, type Vocabulary } from './vocabulary.ts';

/** The words of one sender: a vocabulary, settled by configuration or by the names it is heard to use. */
export interface Words {
  /** For its intake. Undefined as long as no vocabulary is settled. */
  readonly translate: Translate;
  /** What it has been found to speak. */
  readonly vocabulary: Vocabulary | undefined;
  /**
   * Hears the names that the sender has. Answers which of them mean something else than before, so that
   * their series must be asked for anew.
   */
  hear(names: ReadonlySet<string>): ReadonlySet<string>;
}

/**
 * `choices` are the tables that `auto` chooses from, once, or the only one there is when `isSettled`; none
 * leaves every name as it is.
 */
export function createWords(choices: readonly Vocabulary[], isSettled = false): Words {
  let vocabulary = isSettled ? choices[0] : undefined;
  let heard: ReadonlySet<string> = new Set();
  const has = (name: string): boolean => heard.has(name);
  return {
    translate: (kind, name, tags) => vocabulary?.translate(kind, name, tags, has),
    get vocabulary() {
      return vocabulary;
    },
    hear(names) {
      const isSame = names.size === heard.size && [...names].every(has);
      heard = names;
      if (isSame) return new Set();
      const settled = vocabulary ?? recognise(choices, names);
      const isNew = settled !== vocabulary;
      vocabulary = settled;
      return isNew ? names : new Set([...names].filter((name) => settled?.names.has(name)));
    },
  };
}
