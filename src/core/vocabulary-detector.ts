import type { Kind } from './model.ts';
import type { Translate } from './registry/resolver.ts';
import { createTwinChoice, type TwinChoice } from './twins.ts';
import type { Sender, Vocabulary } from './vocabulary.ts';

/**
 * The vocabulary of a sender: the vocabulary with the most of the sender's names that no other vocabulary has. Undefined if there
 * are no such names, or if two vocabularies have equally many.
 */
function detectVocabulary(
  vocabularies: readonly Vocabulary[],
  names: ReadonlySet<string>,
): Vocabulary | undefined {
  const isOwn = (vocabulary: Vocabulary, name: string) =>
    !vocabularies.some((other) => other !== vocabulary && other.names.has(name));
  const ranked = vocabularies
    .map((vocabulary) => {
      const used = [...vocabulary.names].filter((name) => names.has(name) && isOwn(vocabulary, name));
      return { vocabulary, used: used.length };
    })
    .sort((a, b) => b.used - a.used);
  const [best, next] = ranked;
  return best !== undefined && best.used > (next?.used ?? 0) ? best.vocabulary : undefined;
}

/** Detects the vocabulary of one sender, unless the configuration sets it. */
export interface VocabularyDetector {
  /** The translation for the sender's intake. It returns undefined while no vocabulary is known. */
  readonly translate: Translate;
  readonly vocabulary: Vocabulary | undefined;
  /** Whether the vocabulary has a rule for this metric. */
  isKnown(name: string): boolean;
  /** Whether the translation of this metric may depend on the values of tags. */
  readsValues(kind: Kind, name: string): boolean;
  /** Sets the names that the sender has now. Returns the names whose translation may have changed: open their series again. */
  detect(names: ReadonlySet<string>): ReadonlySet<string>;
  /** The metrics whose numbers of observations `weigh` needs. */
  readonly compared: ReadonlySet<string>;
  /**
   * Sets the numbers of observations. Of two metrics with the same observations, only one is used. Returns the names whose
   * translation changed.
   */
  weigh(countOf: (name: string) => number): ReadonlySet<string>;
}

const noTwins: TwinChoice = {
  isRepeated: () => false,
  compared: new Set(),
  sends() {},
  weigh: () => new Set(),
};

/**
 * Creates a detector. `auto` chooses once from the tables `choices`; if `isSettled`, the single table is used. Without tables,
 * names stay as they are.
 */
export function createVocabularyDetector(
  choices: readonly Vocabulary[],
  isSettled = false,
): VocabularyDetector {
  let vocabulary = isSettled ? choices[0] : undefined;
  let twins = twinsOf(vocabulary);
  let sent: ReadonlySet<string> = new Set();
  const has = (name: string): boolean => sent.has(name);
  const sender: Sender = { has, isRepeated: (name) => twins.isRepeated(name) };
  return {
    translate: (kind, name, tags) => vocabulary?.translate(kind, name, tags, sender),
    get vocabulary() {
      return vocabulary;
    },
    isKnown: (name) => vocabulary?.names.has(name) ?? false,
    readsValues: (kind, name) => vocabulary?.readsValues(kind, name) ?? false,
    detect(names) {
      const isSame = names.size === sent.size && [...names].every(has);
      sent = names;
      if (isSame) return new Set();
      const decided = vocabulary ?? detectVocabulary(choices, names);
      const isNew = decided !== vocabulary;
      vocabulary = decided;
      if (isNew) twins = twinsOf(decided);
      twins.sends(names);
      return isNew ? names : new Set([...names].filter((name) => decided?.names.has(name)));
    },
    get compared() {
      return twins.compared;
    },
    weigh: (countOf) => twins.weigh(countOf),
  };
}

function twinsOf(vocabulary: Vocabulary | undefined): TwinChoice {
  const { twins, metrics } = vocabulary?.table ?? {};
  return twins && metrics ? createTwinChoice(twins, Object.keys(metrics)) : noTwins;
}

/** The detector of a sender that puts a prefix and an underscore before its names. Names without the prefix stay as they are. */
export function withPrefix(detector: VocabularyDetector, prefix: string): VocabularyDetector {
  if (prefix === '') return detector;
  const front = `${prefix}_`;
  const bare = (name: string): string => (name.startsWith(front) ? name.slice(front.length) : name);
  const compared = (): ReadonlySet<string> => new Set([...detector.compared].map((name) => front + name));
  return {
    translate: (kind, name, tags) =>
      detector.translate(kind, bare(name), tags) ??
      (bare(name) === name ? undefined : { name: bare(name), tags }),
    get vocabulary() {
      return detector.vocabulary;
    },
    isKnown: (name) => detector.isKnown(bare(name)),
    readsValues: (kind, name) => detector.readsValues(kind, bare(name)),
    detect(names) {
      const changed = detector.detect(new Set([...names].map(bare)));
      return new Set([...names].filter((name) => changed.has(bare(name))));
    },
    get compared() {
      return compared();
    },
    weigh: (countOf) =>
      new Set([...detector.weigh((name) => countOf(front + name))].map((name) => front + name)),
  };
}
