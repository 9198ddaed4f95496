import { Handle } from '../../../core/handles.ts';
import type { Counter, Gauge, Histogram, Intake, Kind, RawTags } from '../../../core/model.ts';
import type { VocabularyDetector } from '../../../core/vocabulary.ts';
import type { OwnSummary, Summaries } from '../summaries.ts';
import type { Line, StatsdType } from './line.ts';

/** The series of one known line, with what it takes to open it anew when its name is found to mean another. */
export interface Sent {
  readonly line: Line;
  readonly type: StatsdType;
  readonly weight: number;
  counter: Counter | undefined;
  gauge: Gauge | undefined;
  histogram: Histogram | undefined;
  summary: OwnSummary | undefined;
  /** What was added to the counter, or where the gauge stands. */
  total: number;
  /** What was observed while the sender's words are not settled; undefined if that is no longer known in full. */
  early: number[] | undefined;
  /** What the vocabulary made of it, as text. */
  meaning: string;
  /** Round of the sweep in which it was last heard of. */
  round: number;
  /** False for one that is given back as soon as its line is read. */
  isKnown: boolean;
}

/** The registry's intake for statsd lines. */
export interface StatsdIntake extends Intake {
  /** The overflow series of a refused one. An intake that refuses nothing does not have it. */
  overflowOf?(refused: { release(): void }): Handle | undefined;
  /** The overflow series of a counter that would be over a limit, if that is known without opening it. */
  overflowFor?(name: string, tags: RawTags): Handle | undefined;
}

export interface SendingDeps {
  intake: StatsdIntake;
  words: VocabularyDetector;
  /** Upper bounds of timers, histograms and distributions. */
  bounds: readonly number[];
  /** There if those are to be summaries. */
  summaries?: Summaries;
}

export interface Sending {
  open(line: Line, round: number): Sent;
  /** Counts one number; false if the line's type does not allow it. A signed gauge is `relative`. */
  take(sent: Sent, value: number, relative: boolean): boolean;
  /**
   * Opens lines of one series anew if their meaning changed, with what each counted so far. All that hold the
   * series must be among them: as long as one does, the intake knows it by its old meaning.
   */
  reopen(sents: readonly Sent[]): void;
  close(sent: Sent): void;
  /**
   * For a series that the registry refused: closes it and returns the one that counts for all such series of its
   * family, type and rate, so that the line itself need not be kept. Undefined for any other series.
   */
  share(sent: Sent): Sent | undefined;
  /** What `share` would return for the line, if that is known without opening its series. */
  sharedFor(line: Line): Sent | undefined;
  /** Closes all that `share` returned. */
  closeShared(): void;
}

/** Observations kept in all until the vocabulary is settled, 160 kB. Beyond, histograms start at 0 then. */
const maxEarly = 10_000;
/** Beyond this many, refused lines are opened anew each time they come. */
const maxSharedSeries = 4096;
const isDistribution = (type: StatsdType) => type === 'timer' || type === 'histogram';
const heldBy = ({ counter, gauge, histogram, summary }: Sent) => counter ?? gauge ?? histogram ?? summary;

/**
 * Whether nothing goes out of sight when this series is given back: others hold it too, or it has no place. Of
 * such series any number may come and go without being remembered.
 */
export function isShared(sent: Sent): boolean {
  const handle = sent.summary?.handle ?? heldBy(sent);
  if (!(handle instanceof Handle)) return false;
  return handle.owners > 1 || handle.at < 0 || handle.next !== undefined || handle.previous !== undefined;
}

/** Whether a type may have this number. Counters only grow, and time does not run backwards. */
export function isAllowed(type: StatsdType, value: number): boolean {
  return value >= 0 ? value < Infinity : value > -Infinity && (type === 'gauge' || type === 'histogram');
}

/** Hands series of known lines in at the intake. Timers come in milliseconds and go in as seconds. */
export function createSending({ intake, words, bounds, summaries }: SendingDeps): Sending {
  let earlyLeft = maxEarly;
  const shared = new Map<string, Sent>();
  /** Numbers the overflow series, for the keys of `shared`. */
  const overflowNumbers = new Map<Handle, number>();

  const numberOf = (overflow: Handle): number => {
    const number = overflowNumbers.get(overflow) ?? overflowNumbers.size;
    overflowNumbers.set(overflow, number);
    return number;
  };

  const kindOf = (type: StatsdType): Kind => {
    if (type === 'counter' || type === 'gauge') return type;
    return summaries === undefined ? 'histogram' : 'summary';
  };
  const meaningOf = ({ name, tags, type }: Line): string =>
    JSON.stringify(words.translate(kindOf(type), name, tags) ?? '');

  const acquire = (sent: Sent): void => {
    const { name, tags } = sent.line;
    if (sent.type === 'counter') sent.counter = intake.counter(name, tags);
    else if (sent.type === 'gauge') sent.gauge = intake.gauge(name, tags);
    else if (summaries === undefined) sent.histogram = intake.histogram(name, tags, { bounds });
    else sent.summary = summaries.open(name, tags);
  };

  const keepEarly = (sent: Sent, value: number): void => {
    if (earlyLeft > 0) sent.early?.push(value);
    else sent.early = undefined;
    earlyLeft--;
  };

  /** A series that only repeats others is refused: what it counted is theirs. */
  const carryOver = (sent: Sent): void => {
    const { counter, gauge, histogram, summary, total, early, weight, meaning } = sent;
    if (meaning === '"double"') return;
    if (total > 0) counter?.add(total);
    gauge?.set(total);
    for (const value of early ?? []) (histogram ?? summary)?.observe(value, weight);
  };

  return {
    open(line, round) {
      const isEarly = words.vocabulary === undefined && earlyLeft > 0;
      const sent: Sent = {
        line,
        type: line.type,
        weight: line.weight,
        counter: undefined,
        gauge: undefined,
        histogram: undefined,
        summary: undefined,
        total: 0,
        early: isEarly && isDistribution(line.type) ? [] : undefined,
        meaning: meaningOf(line),
        round,
        isKnown: true,
      };
      acquire(sent);
      return sent;
    },
    take(sent, value, relative) {
      const { type, weight } = sent;
      if (!isAllowed(type, value)) return false;
      if (type === 'counter') {
        sent.total += value * weight;
        sent.counter!.add(value * weight);
      } else if (type === 'gauge') {
        sent.total = relative ? sent.total + value : value;
        if (relative) sent.gauge!.add(value);
        else sent.gauge!.set(value);
      } else {
        const observed = type === 'timer' ? value / 1000 : value;
        if (sent.early !== undefined) keepEarly(sent, observed);
        (sent.histogram ?? sent.summary)!.observe(observed, weight);
      }
      return true;
    },
    reopen(sents) {
      const changed = sents.filter((sent) => meaningOf(sent.line) !== sent.meaning);
      for (const sent of changed) heldBy(sent)?.release();
      for (const sent of changed) {
        sent.meaning = meaningOf(sent.line);
        acquire(sent);
        carryOver(sent);
      }
      for (const sent of sents) sent.early = undefined;
    },
    close: (sent) => heldBy(sent)?.release(),
    share(sent) {
      const handle = sent.summary?.handle ?? heldBy(sent);
      if (!(handle instanceof Handle) || !handle.refused || handle.waitsIn) return undefined;
      const overflow = sent.summary === undefined ? intake.overflowOf?.(handle) : undefined;
      const target = overflow === undefined ? sent.line.name : numberOf(overflow);
      const key = `${sent.type} ${sent.weight} ${target}`;
      const known = shared.get(key);
      if (known === undefined && shared.size >= maxSharedSeries) {
        overflow?.release();
        return undefined;
      }
      if (known !== undefined) {
        overflow?.release();
        heldBy(sent)?.release();
        return known;
      }
      const first: Sent = { ...sent, early: undefined, isKnown: true };
      if (overflow !== undefined) {
        heldBy(sent)?.release();
        if (first.counter !== undefined) first.counter = overflow as unknown as Counter;
        else first.histogram = overflow as unknown as Histogram;
      }
      shared.set(key, first);
      return first;
    },
    sharedFor({ name, tags, type, weight }) {
      if (type !== 'counter' || shared.size === 0) return undefined;
      const overflow = intake.overflowFor?.(name, tags);
      return overflow && shared.get(`${type} ${weight} ${numberOf(overflow)}`);
    },
    closeShared() {
      for (const sent of shared.values()) heldBy(sent)?.release();
      shared.clear();
      overflowNumbers.clear();
    },
  };
}
