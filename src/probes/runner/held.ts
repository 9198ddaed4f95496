import type { Counter, Gauge } from '../../core/model.ts';
import type { Sample, SeriesName } from '../probe.ts';
import { openSeries, type SeriesIntake, textOf } from './intakes.ts';

/** Gauges that one look sets. */
export interface Gauges {
  /** These, and no others any more. */
  show(samples: readonly Sample[]): void;
}

export function createGauges(intake: SeriesIntake): Gauges {
  let held = new Map<string, Gauge>();
  return {
    show(samples) {
      const next = new Map<string, Gauge>();
      for (const sample of samples) {
        const text = textOf(sample);
        const gauge = next.get(text) ?? held.get(text) ?? openSeries(intake, sample);
        gauge.set(sample.value);
        next.set(text, gauge);
      }
      for (const [text, gauge] of held) if (!next.has(text)) gauge.release();
      held = next;
    },
  };
}

/** Counters, opened once each. */
export interface Counters {
  /** The counter, at 0 if it is new. */
  of(series: SeriesName): Counter;
  release(): void;
}

/** The intake is asked for with the first counter. */
export function createCounters(intake: () => SeriesIntake): Counters {
  const held = new Map<string, Counter>();
  return {
    of(series) {
      const text = textOf(series);
      const counter = held.get(text) ?? openSeries(intake(), series);
      held.set(text, counter);
      return counter;
    },
    release() {
      for (const counter of held.values()) counter.release();
      held.clear();
    },
  };
}
