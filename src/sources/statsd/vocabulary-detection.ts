import type { Clock } from '../../core/ports.ts';
import type { SliceQueue } from '../../core/slices.ts';
import type { VocabularyDetector } from '../../core/vocabulary.ts';
import type { KnownLines } from './lines/known-lines.ts';
import type { SeriesRecorder } from './lines/statsd-series.ts';

/** Detects the vocabulary of a sender from the names that it uses, and reopens its series under their new names. */
export interface VocabularyDetection {
  addName(name: string): void;
  /** Whether all names so far are decided. */
  isSettled(): boolean;
  stop(): void;
}

export interface VocabularyDetectionDeps {
  words: VocabularyDetector;
  knownLines(): KnownLines;
  recorder: SeriesRecorder;
  slices: SliceQueue;
  clock: Clock;
}

const delayMs = 1000;
/** Further names are ignored: no product has so many, and each takes memory permanently. */
const maxNames = 10_000;

export function createVocabularyDetection({
  words,
  knownLines,
  recorder,
  slices,
  clock,
}: VocabularyDetectionDeps): VocabularyDetection {
  const names = new Set<string>();
  let cancel: (() => void) | undefined;

  /** Ids of known lines of these names, those of one series together. */
  const bySeries = (reworded: ReadonlySet<string>): number[][] => {
    const groups = new Map<string, number[]>();
    for (let id = 0; id < knownLines().end; id++) {
      const series = knownLines().seriesOf(id);
      if (series === undefined || !reworded.has(series.line.name)) continue;
      const { type, name, tags } = series.line;
      const key = JSON.stringify([type, name, Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1))]);
      const group = groups.get(key);
      if (group) group.push(id);
      else groups.set(key, [id]);
    }
    return [...groups.values()];
  };
  const reopenAll = (ids: readonly number[]) =>
    recorder.reopen(ids.map((id) => knownLines().seriesOf(id)).filter((series) => series !== undefined));

  const reopen = (reworded: ReadonlySet<string>) => {
    knownLines().forgetRefused();
    const groups = bySeries(reworded);
    // At once: a line that came meanwhile would join the old series. Few series have several lines.
    for (const group of groups) if (group.length > 1) reopenAll(group);
    const alone = groups.filter((group) => group.length === 1);
    let next = 0;
    slices.whenIdle(() => {
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
    addName(name) {
      if (names.has(name) || names.size >= maxNames) return;
      names.add(name);
      cancel ??= clock.after(delayMs, listen);
    },
    isSettled: () => cancel === undefined,
    stop: () => cancel?.(),
  };
}
