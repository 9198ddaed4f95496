import { compareText } from '../../../core/labels.ts';
import type { FamilyView, Kind, Labels, SeriesView } from '../../../core/model.ts';
import { jobOf, type Origin } from '../protocol.ts';
import { metricTypes, type Row, type Word, wordOf } from './message.ts';

/** Hands out a series' lines one after another, each in the same row: whoever gets it must not keep it. */
export interface Lines {
  /**
   * All lines of a series; `numbers` undefined: the markers of its end. They lie 1 ms before the picture, so that
   * they never meet a sample of a series that has come in its place.
   */
  each(
    family: FamilyView,
    series: SeriesView,
    numbers: Float64Array | undefined,
    take: (row: Row) => void,
  ): void;
  /** A picture begins, taken at this time. Texts that nobody uses any more are forgotten now and then. */
  begin(timeMs: number): void;
}

/** What does not change from picture to picture. */
interface Fixed {
  /** Labels of the lines without `le` or `quantile`, and the place of the name's value. */
  readonly plain: Word[];
  readonly plainName: number;
  /** Labels of those with, and the places of the name's value and of theirs. */
  readonly bounded: Word[];
  readonly boundedName: number;
  readonly boundedValue: number;
  readonly bounds: readonly Word[];
  readonly kind: Kind;
}

const spareWords = 1000;
const counts: ReadonlySet<Kind> = new Set<Kind>(['counter', 'histogram', 'summary']);

export function createLines(origin: Origin): Lines {
  let words = new Map<string, Word>();
  let known = new WeakMap<SeriesView, Fixed>();
  let mostWords = spareWords;
  let isRenewed = true;

  const wordFor = (text: string): Word => {
    let word = words.get(text);
    if (!word) {
      word = wordOf(Buffer.from(text));
      words.set(text, word);
    }
    return word;
  };

  const pairsOf = (series: SeriesView): [string, string][] => {
    const pairs = series.labels.map(([name, value]): [string, string] => [name, value]);
    const add = (name: string, value: string) => {
      if (value !== '' && !pairs.some(([taken]) => taken === name)) pairs.push([name, value]);
    };
    add('job', jobOf(series));
    add('instance', origin.instance);
    return [...pairs, ['__name__', '']];
  };
  const sorted = (pairs: Labels): { labels: Word[]; place(name: string): number } => {
    const inOrder = [...pairs].sort(([a], [b]) => compareText(a, b));
    return {
      labels: inOrder.flatMap(([name, value]) => [wordFor(name), wordFor(value)]),
      place: (name) => inOrder.findIndex(([other]) => other === name) * 2 + 1,
    };
  };
  const fix = (kind: Kind, series: SeriesView): Fixed => {
    const pairs = pairsOf(series);
    const extra = kind === 'histogram' ? 'le' : 'quantile';
    const plain = sorted(pairs);
    const bounded = sorted([...pairs, [extra, '']]);
    const bounds = kind === 'histogram' ? [...series.bounds, '+Inf'] : series.bounds;
    const fixed = {
      plain: plain.labels,
      plainName: plain.place('__name__'),
      bounded: bounded.labels,
      boundedName: bounded.place('__name__'),
      boundedValue: bounded.place(extra),
      bounds: bounds.map(wordFor),
      kind,
    };
    known.set(series, fixed);
    return fixed;
  };

  let pictureMs = 0;
  const row: Row = {
    labels: [],
    type: 0,
    help: wordFor(''),
    value: 0,
    stale: false,
    timeMs: 0,
    startMs: 0,
  };

  const distribution = (
    name: string,
    fixed: Fixed,
    value: (part: number) => number,
    take: (row: Row) => void,
  ): void => {
    const { bounded, plain, bounds, kind } = fixed;
    const startMs = row.startMs;
    bounded[fixed.boundedName] = wordFor(kind === 'histogram' ? `${name}_bucket` : name);
    row.labels = bounded;
    // Quantiles go up and down.
    if (kind === 'summary') row.startMs = 0;
    for (let part = 0; part < bounds.length; part++) {
      bounded[fixed.boundedValue] = bounds[part]!;
      row.value = value(part);
      take(row);
    }
    row.labels = plain;
    row.startMs = startMs;
    for (const [i, ending] of ['_sum', '_count'].entries()) {
      plain[fixed.plainName] = wordFor(name + ending);
      row.value = value(bounds.length + i);
      take(row);
    }
  };

  return {
    begin(timeMs) {
      pictureMs = timeMs;
      if (isRenewed) mostWords = words.size * 2 + spareWords;
      isRenewed = words.size > mostWords;
      if (!isRenewed) return;
      words = new Map();
      known = new WeakMap();
    },
    each(family, series, numbers, take) {
      const { kind } = family;
      const remembered = known.get(series);
      const fixed = remembered?.kind === kind ? remembered : fix(kind, series);
      const name = origin.prefix + family.name;
      const { at, startMs } = series;
      row.stale = numbers === undefined;
      row.timeMs = numbers ? pictureMs : pictureMs - 1;
      row.type = metricTypes[kind];
      row.help = wordFor(family.help);
      row.startMs = numbers && counts.has(kind) && startMs <= row.timeMs ? Math.floor(startMs) : 0;
      const value = (part: number): number => (numbers ? numbers[at + part]! : 0);
      if (kind === 'histogram' || kind === 'summary') return distribution(name, fixed, value, take);
      fixed.plain[fixed.plainName] = wordFor(name);
      row.labels = fixed.plain;
      row.value = value(0);
      take(row);
    },
  };
}
