import type { Counter, Gauge, Histogram, Intake, Kind, Shape } from '../../../core/model.ts';
import { Handle } from '../../../core/registry/handles.ts';
import type { OpenIntake } from '../../../core/registry/intake.ts';
import type { VocabularyDetector } from '../../../core/vocabulary-detector.ts';
import type { OwnSummary, Summaries } from '../summaries.ts';
import type { StatsdLine, StatsdType } from './line-format.ts';

/** The series of one known line, with the data to open it again when the translation of its name changes. */
export interface StatsdSeries {
  readonly line: StatsdLine;
  readonly type: StatsdType;
  readonly weight: number;
  counter: Counter | undefined;
  gauge: Gauge | undefined;
  histogram: Histogram | undefined;
  summary: OwnSummary | undefined;
  /** The sum of what was added to the counter, or the value of the gauge. */
  total: number;
  /** Observations while the sender's vocabulary is not decided; undefined if not all of them were stored. */
  early: number[] | undefined;
  /** The translation of the series by the vocabulary, as text. */
  translation: string;
  /** The round of the expiry in which the line last arrived. */
  round: number;
  /** False for a series that is closed as soon as its line is read. */
  isKnown: boolean;
}

/**
 * The registry's intake for statsd lines. An intake that refuses nothing does not have the methods for refused
 * series.
 */
export type StatsdIntake = Intake & Partial<Pick<OpenIntake, 'overflowOf' | 'overLimitAs' | 'overLimitForm'>>;

interface SeriesRecorderDeps {
  intake: StatsdIntake;
  detector: VocabularyDetector;
  /** Upper bounds of timers, histograms and distributions. */
  bounds: readonly number[];
  /** Set if timers, histograms and distributions become summaries. */
  summaries?: Summaries;
}

export interface SeriesRecorder extends SharedSeries {
  open(line: StatsdLine, round: number): StatsdSeries;
  /** Counts one number; false if the line's type does not allow it. `relative`: the number is a signed gauge. */
  take(series: StatsdSeries, value: number, relative: boolean): boolean;
  /**
   * Opens the lines of one series again if their translation changed, with what each line counted so far. The lines must include
   * every owner of the series: while one owner is left, the intake keeps the old translation.
   */
  reopen(series: readonly StatsdSeries[]): void;
  close(series: StatsdSeries): void;
}

interface SharedSeries {
  /**
   * For a series that the registry refused: closes it and returns the series that counts for all such series of its family, type
   * and rate, so that the line itself need not be remembered. Undefined for any other series.
   */
  share(series: StatsdSeries): StatsdSeries | undefined;
  /** What `share` would return for the line, if that is known without opening its series. */
  sharedFor(line: StatsdLine): StatsdSeries | undefined;
  /**
   * Like `sharedFor`, for all lines that differ from this one only in the values of these tags, which are all of its tags, in the
   * order of the line.
   */
  sharedForForm(line: StatsdLine, tagKeys: readonly string[]): SharedForm | undefined;
  /** Closes all series that `share` returned. */
  closeShared(): void;
}

/** The lines that differ only in the values of their tags. */
export interface SharedForm {
  /** The series that counts for lines over a limit. */
  readonly series: StatsdSeries;
  /** Whether the line with these values is over a limit: see `OverLimitForm`. */
  takes(hashes: Int32Array): boolean;
}

/**
 * The maximum number of observations that are stored in all until the vocabulary is decided; they take 160 kB. A histogram with
 * further observations starts at 0 when it is opened again.
 */
const maxEarly = 10_000;
/**
 * The maximum number of series for refused lines. A refused line that needs a further series is opened again each time it
 * arrives.
 */
const maxSharedSeries = 4096;
const isDistribution = (type: StatsdType) => type === 'timer' || type === 'histogram';
const heldBy = ({ counter, gauge, histogram, summary }: StatsdSeries) =>
  counter ?? gauge ?? histogram ?? summary;

/** The registry's handle, if a registry is behind the intake. */
function handleOf(series: StatsdSeries): Handle | undefined {
  const handle = series.summary?.handle ?? heldBy(series);
  return handle instanceof Handle ? handle : undefined;
}

/** Whether the registry refused the series or adds it up in an overflow series. */
export function isOverLimit(series: StatsdSeries): boolean {
  const handle = handleOf(series);
  return handle?.refused === true && !handle.waitsIn;
}

/** Whether releasing this series hides nothing, because it has other owners or no cells. Such a series need not be remembered. */
export function isShared(series: StatsdSeries): boolean {
  const handle = handleOf(series);
  if (handle === undefined) return false;
  return handle.owners > 1 || handle.at < 0 || handle.next !== undefined || handle.previous !== undefined;
}

/** Whether a type may have this number. Counters and timers never have negative numbers. */
export function isAllowed(type: StatsdType, value: number): boolean {
  return value >= 0 ? value < Infinity : value > -Infinity && (type === 'gauge' || type === 'histogram');
}

/** Opens the series of known lines at the intake. Timers are converted from milliseconds to seconds. */
export function createSeriesRecorder({
  intake,
  detector,
  bounds,
  summaries,
}: SeriesRecorderDeps): SeriesRecorder {
  let earlyLeft = maxEarly;
  const shape: Shape = { bounds };

  const kindOf = (type: StatsdType): Kind => {
    if (type === 'counter' || type === 'gauge') return type;
    return summaries === undefined ? 'histogram' : 'summary';
  };
  const translationOf = ({ name, tags, type }: StatsdLine): string =>
    JSON.stringify(detector.translate(kindOf(type), name, tags) ?? '');

  const acquire = (series: StatsdSeries): void => {
    const { name, tags } = series.line;
    if (series.type === 'counter') series.counter = intake.counter(name, tags);
    else if (series.type === 'gauge') series.gauge = intake.gauge(name, tags);
    else if (summaries === undefined) series.histogram = intake.histogram(name, tags, shape);
    else series.summary = summaries.open(name, tags);
  };

  const keepEarly = (series: StatsdSeries, value: number): void => {
    if (earlyLeft > 0) series.early?.push(value);
    else series.early = undefined;
    earlyLeft--;
  };

  return {
    open(line, round) {
      const isEarly = detector.vocabulary === undefined && earlyLeft > 0;
      const series: StatsdSeries = {
        line,
        type: line.type,
        weight: line.weight,
        counter: undefined,
        gauge: undefined,
        histogram: undefined,
        summary: undefined,
        total: 0,
        early: isEarly && isDistribution(line.type) ? [] : undefined,
        translation: translationOf(line),
        round,
        isKnown: true,
      };
      acquire(series);
      return series;
    },
    take(series, value, relative) {
      const { type, weight } = series;
      if (!isAllowed(type, value)) return false;
      if (type === 'counter') {
        series.total += value * weight;
        series.counter!.add(value * weight);
      } else if (type === 'gauge') {
        series.total = relative ? series.total + value : value;
        if (relative) series.gauge!.add(value);
        else series.gauge!.set(value);
      } else {
        const observed = type === 'timer' ? value / 1000 : value;
        if (series.early !== undefined) keepEarly(series, observed);
        (series.histogram ?? series.summary)!.observe(observed, weight);
      }
      return true;
    },
    reopen(all) {
      const changed = all.filter((series) => translationOf(series.line) !== series.translation);
      for (const series of changed) heldBy(series)?.release();
      for (const series of changed) {
        series.translation = translationOf(series.line);
        acquire(series);
        addEarlierCount(series);
      }
      for (const series of all) series.early = undefined;
    },
    close: (series) => heldBy(series)?.release(),
    ...createSharedSeries({ intake, detector, shape, kindOf }),
  };
}

/** Adds what a series counted before it was opened again. A series that the vocabulary leaves out counts nowhere. */
function addEarlierCount({ counter, gauge, histogram, summary, total, early, weight }: StatsdSeries): void {
  if (total > 0) counter?.add(total);
  gauge?.set(total);
  for (const value of early ?? []) (histogram ?? summary)?.observe(value, weight);
}

interface SharedSeriesDeps extends Pick<SeriesRecorderDeps, 'intake' | 'detector'> {
  shape: Shape;
  kindOf(type: StatsdType): Kind;
}

/** The series that count for refused lines: one for all lines with the same overflow series, type and rate. */
function createSharedSeries({ intake, detector, shape, kindOf }: SharedSeriesDeps): SharedSeries {
  const shared = new Map<string, StatsdSeries>();
  /** Numbers the overflow series. */
  const overflowNumbers = new WeakMap<Handle, number>();
  let nextNumber = 0;

  /** The key in `shared`. Refused series count nowhere, so one series stands for all of them. */
  const keyOf = (
    { type, weight }: Pick<StatsdLine, 'type' | 'weight'>,
    overflow: Handle | 'refused',
  ): string => {
    if (overflow === 'refused') return `${type} refused`;
    const number = overflowNumbers.get(overflow) ?? nextNumber++;
    overflowNumbers.set(overflow, number);
    return `${type} ${weight} ${number}`;
  };

  return {
    share(series) {
      const handle = handleOf(series);
      if (handle === undefined || !isOverLimit(series)) return undefined;
      const overflow = series.summary === undefined ? intake.overflowOf?.(handle) : undefined;
      const key = keyOf(series, overflow ?? 'refused');
      const known = shared.get(key);
      if (known === undefined && shared.size >= maxSharedSeries) {
        overflow?.release();
        return undefined;
      }
      if (known !== undefined) {
        overflow?.release();
        heldBy(series)?.release();
        return known;
      }
      const first: StatsdSeries = { ...series, early: undefined, isKnown: true };
      if (overflow !== undefined) {
        heldBy(series)?.release();
        if (first.counter !== undefined) first.counter = overflow as unknown as Counter;
        else first.histogram = overflow as unknown as Histogram;
      }
      shared.set(key, first);
      return first;
    },
    sharedFor(line) {
      if (shared.size === 0) return undefined;
      const { name, tags, type } = line;
      const accepts = (target: Handle | 'refused') => shared.has(keyOf(line, target));
      const target = intake.overLimitAs?.(kindOf(type), name, tags, shape, accepts);
      return target && shared.get(keyOf(line, target));
    },
    sharedForForm(line, tagKeys) {
      const { name, type } = line;
      const kind = kindOf(type);
      if (detector.readsValues(kind, name)) return undefined;
      const mayRefuse = shared.has(keyOf(line, 'refused'));
      const placeholders = new Map(tagKeys.map((key, i) => [key, `\u0001${i}`]));
      const form = intake.overLimitForm?.(kind, name, placeholders, shape, mayRefuse);
      const series = form && shared.get(keyOf(line, form.target));
      return series && { series, takes: form.takes };
    },
    closeShared() {
      for (const series of shared.values()) heldBy(series)?.release();
      shared.clear();
    },
  };
}
