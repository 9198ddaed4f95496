import type { Part, RawTags } from '../../../core/model.ts';
import type { VocabularyDetector } from '../../../core/vocabulary.ts';
import type { LineTable } from '../exposition/line-table.ts';
import type { Page } from '../exposition/page-reader.ts';
import { type Assembly, assemble } from './assemble.ts';
import { both, signatureOf } from './feed.ts';
import type { PageIntake } from './intake.ts';
import { createMembership, type Sent } from './membership.ts';

export interface RelayDeps {
  intake: PageIntake;
  /** The words of the target, by which the intake translates. */
  words: VocabularyDetector;
  /** Lets other work have its turn when a slice of time is used up; undefined while it is not. */
  breathe(): Promise<void> | undefined;
}

/** What a page came to. */
export interface Relayed {
  series: number;
  /** Lines of which no series could be made, and those that repeat another's number. */
  refusedLines: number;
  /** Counters and counts of distributions that were on the page before too, and those of them that fell. */
  counters: number;
  fallen: number;
}

/**
 * Keeps the series of one target in the registry in step with its pages. Series are put together at the end of
 * a page, so it does not matter whether a TYPE stands before or behind its samples; each known line then
 * feeds the number that is its own, without a look-up.
 */
export interface Relay {
  /** Tells the registry which series a page has; the numbers are not set yet. */
  arrange(page: Page): Promise<void>;
  /** Sets the numbers of an arranged page, in one step. */
  fill(page: Page): Relayed;
  /** Takes everything out of the registry. The lines stay known, so that the target may come back. */
  withdraw(): void;
  /** The single numbers of a metric as taken last, by the target's name of it or the catalog's. */
  look(family: string): { labels: RawTags; value: number }[];
  /** Every metric of the target, with the names it has in the catalog's words. */
  names(): Map<string, Set<string>>;
}

/** One number of a metric that is looked at. */
interface Place {
  line: number;
  labels: RawTags;
  divisor: number;
}

export function createRelay(table: LineTable, { intake, words, breathe }: RelayDeps): Relay {
  const partOf: (Part | undefined)[] = [];
  /** 1 for a line whose number only falls when its sender restarts. */
  const grows: number[] = [];
  const repeated = new Map<Sent, number>();
  const forget = (id: number): void => {
    partOf[id] = undefined;
    grows[id] = 0;
  };
  const membership = createMembership(table, { forget, breathe });
  /** By family that somebody asked for; holds as long as the page has the same series. */
  const found = new Map<string, Place[]>();
  let withdrawn = true;

  const close = (series: Sent): void => {
    series.parts?.release();
    series.parts = undefined;
    series.signature = '';
    repeated.delete(series);
  };

  const bind = (series: Sent, { lines, kind, sumAt }: Assembly): void => {
    for (const id of series.lines) partOf[id] = undefined;
    lines.forEach((id, index) => {
      const part = series.parts!.part(index);
      if (id === -1) return;
      partOf[id] = partOf[id] === undefined ? part : both(partOf[id], part);
      grows[id] = kind === 'counter' || (sumAt !== -1 && index > sumAt) ? 1 : 0;
    });
  };

  const rebuild = (series: Sent): void => {
    const assembly = assemble(membership.linesOf(series), membership.declared.helps.get(series.family));
    const signature = assembly.parts === 0 ? '' : signatureOf(assembly);
    if (series.signature !== signature) close(series);
    if (assembly.refused.length > 0) repeated.set(series, assembly.refused.length);
    else repeated.delete(series);
    if (assembly.parts > 0) {
      series.parts ??= intake.parts(assembly.kind, assembly.family, assembly.tags, assembly.shape);
      series.signature = signature;
      bind(series, assembly);
    } else for (const id of series.lines) partOf[id] = undefined;
  };

  /** Closes the series whose metric means something else since the page has other names, to be opened anew. */
  const addReworded = (dirty: Set<Sent>): void => {
    const names = new Set<string>();
    for (const { family } of membership.series.values()) names.add(family);
    const reworded = words.detect(names);
    if (reworded.size === 0) return;
    for (const series of membership.series.values()) {
      if (!reworded.has(series.family)) continue;
      close(series);
      dirty.add(series);
    }
  };

  const read = (series: Sent) => {
    const { kind, family, tags, parts } = assemble(membership.linesOf(series), undefined);
    const translated = words.translate(kind, family, tags);
    return { parts, tags, translated: translated ?? { name: family, tags, divisor: 1 } };
  };

  /** Where the numbers of a metric stand; worked out once for a set of series, as it goes through them all. */
  const placesOf = (family: string): Place[] => {
    const places: Place[] = [];
    for (const series of membership.series.values()) {
      if (series.family !== family && !words.vocabulary?.names.has(series.family)) continue;
      const { parts, tags, translated } = read(series);
      if (parts !== 1 || translated === 'left_out') continue;
      const line = series.lines[0]!;
      if (series.family === family) places.push({ line, labels: tags, divisor: 1 });
      else if (translated.name === family)
        places.push({ line, labels: translated.tags, divisor: translated.divisor ?? 1 });
    }
    return places;
  };

  return {
    async arrange(page) {
      if (!page.changed && !withdrawn) return;
      found.clear();
      const dirty = page.changed ? await membership.update(page) : new Set<Sent>();
      if (page.changed) addReworded(dirty);
      if (withdrawn) for (const series of membership.series.values()) dirty.add(series);
      withdrawn = false;
      // What is gone makes room for what is new.
      for (const series of dirty) if (series.lines.length === 0) close(series);
      for (const series of dirty) {
        if (series.lines.length > 0) rebuild(series);
        const pause = breathe();
        if (pause !== undefined) await pause;
      }
      // Somebody may have looked in a pause.
      found.clear();
    },
    fill({ order, count }) {
      const { incoming, taken } = table;
      let fallen = 0;
      let counters = 0;
      for (let n = 0; n < count; n++) {
        const id = order[n]!;
        const value = incoming[id]!;
        partOf[id]?.set(value);
        if (grows[id] !== 1) continue;
        if (value < taken[id]!) fallen++;
        if (!Number.isNaN(taken[id]!)) counters++;
      }
      let refusedLines = membership.refusedLines;
      for (const lines of repeated.values()) refusedLines += lines;
      return { series: membership.series.size, refusedLines, counters, fallen };
    },
    withdraw() {
      for (const series of membership.series.values()) close(series);
      withdrawn = true;
    },
    look(family) {
      if (withdrawn) return [];
      const places = found.get(family) ?? placesOf(family);
      found.set(family, places);
      return places.map(({ line, labels, divisor }) => ({ labels, value: table.taken[line]! / divisor }));
    },
    names() {
      const names = new Map<string, Set<string>>();
      for (const series of membership.series.values()) {
        const { translated } = read(series);
        const known = names.get(series.family) ?? new Set();
        if (translated !== 'left_out') {
          known.add(translated.name);
          if (translated.also) known.add(translated.also.name);
        }
        names.set(series.family, known);
      }
      return names;
    },
  };
}
