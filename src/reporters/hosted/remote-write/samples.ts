import { compareText } from '../../../core/labels.ts';
import type { FamilyView, Kind, Labels, SeriesView } from '../../../core/model.ts';
import { jobOf, type Origin, startTimeOf } from '../protocol.ts';
import { metricTypes, type Sample, type Text, textOf } from './message.ts';

/** Turns series into samples. Each call of `take` gets the same object, which must not be kept. */
export interface Sampler {
  /**
   * All samples of a series; `numbers` undefined: stale markers. Those are dated 1 ms before the report, so that
   * they never collide with a sample of a series that replaced this one.
   */
  each(
    family: FamilyView,
    series: SeriesView,
    numbers: Float64Array | undefined,
    take: (sample: Sample) => void,
  ): void;
  /** Begins a report of this time. Cached texts that are no longer used are dropped from time to time. */
  begin(timeMs: number): void;
}

/** What is cached per series between reports. */
interface CachedLabels {
  /** Labels of samples without `le` or `quantile`, and the index of the metric name. */
  readonly plain: Text[];
  readonly plainName: number;
  /** Labels of samples with them, and the indexes of the metric name and of their value. */
  readonly bounded: Text[];
  readonly boundedName: number;
  readonly boundedValue: number;
  readonly bounds: readonly Text[];
  readonly kind: Kind;
  /** Whether the series has a sum, and a count. */
  readonly has: readonly [sum: boolean, count: boolean];
}

const spareTexts = 1000;

export function createSampler(origin: Origin): Sampler {
  let texts = new Map<string, Text>();
  let known = new WeakMap<SeriesView, CachedLabels>();
  let mostTexts = spareTexts;
  let isReset = true;

  const textFor = (value: string): Text => {
    let text = texts.get(value);
    if (!text) {
      text = textOf(Buffer.from(value));
      texts.set(value, text);
    }
    return text;
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
  const sorted = (pairs: Labels): { labels: Text[]; place(name: string): number } => {
    const inOrder = [...pairs].sort(([a], [b]) => compareText(a, b));
    return {
      labels: inOrder.flatMap(([name, value]) => [textFor(name), textFor(value)]),
      place: (name) => inOrder.findIndex(([other]) => other === name) * 2 + 1,
    };
  };
  const cache = (kind: Kind, series: SeriesView): CachedLabels => {
    const pairs = pairsOf(series);
    const extra = kind === 'histogram' ? 'le' : 'quantile';
    const plain = sorted(pairs);
    const bounded = sorted([...pairs, [extra, '']]);
    const bounds = kind === 'histogram' ? [...series.bounds, '+Inf'] : series.bounds;
    const cached: CachedLabels = {
      plain: plain.labels,
      plainName: plain.place('__name__'),
      bounded: bounded.labels,
      boundedName: bounded.place('__name__'),
      boundedValue: bounded.place(extra),
      bounds: bounds.map(textFor),
      kind,
      has: [series.hasSum, series.hasCount],
    };
    known.set(series, cached);
    return cached;
  };

  let reportMs = 0;
  const sample: Sample = {
    labels: [],
    type: 0,
    help: textFor(''),
    value: 0,
    stale: false,
    timeMs: 0,
    startMs: 0,
  };

  const distribution = (
    name: string,
    cached: CachedLabels,
    value: (part: number) => number,
    take: (sample: Sample) => void,
  ): void => {
    const { bounded, plain, bounds, kind, has } = cached;
    const startMs = sample.startMs;
    bounded[cached.boundedName] = textFor(kind === 'histogram' ? `${name}_bucket` : name);
    sample.labels = bounded;
    // Quantiles are gauges.
    if (kind === 'summary') sample.startMs = 0;
    for (let part = 0; part < bounds.length; part++) {
      bounded[cached.boundedValue] = bounds[part]!;
      sample.value = value(part);
      take(sample);
    }
    sample.labels = plain;
    sample.startMs = startMs;
    for (const [i, ending] of ['_sum', '_count'].entries()) {
      if (!has[i]) continue;
      plain[cached.plainName] = textFor(name + ending);
      sample.value = value(bounds.length + i);
      take(sample);
    }
  };

  return {
    begin(timeMs) {
      reportMs = timeMs;
      if (isReset) mostTexts = texts.size * 2 + spareTexts;
      isReset = texts.size > mostTexts;
      if (!isReset) return;
      texts = new Map();
      known = new WeakMap();
    },
    each(family, series, numbers, take) {
      const { kind } = family;
      const remembered = known.get(series);
      const cached = remembered?.kind === kind ? remembered : cache(kind, series);
      const name = origin.prefix + family.name;
      const { at } = series;
      sample.stale = numbers === undefined;
      sample.timeMs = numbers ? reportMs : reportMs - 1;
      sample.type = metricTypes[kind];
      sample.help = textFor(family.help);
      sample.startMs = numbers ? startTimeOf(origin, kind, series, sample.timeMs) : 0;
      const value = (part: number): number => (numbers ? numbers[at + part]! : 0);
      if (kind === 'histogram' || kind === 'summary') return distribution(name, cached, value, take);
      cached.plain[cached.plainName] = textFor(name);
      sample.labels = cached.plain;
      sample.value = value(0);
      take(sample);
    },
  };
}
