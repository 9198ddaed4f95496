import type { ThresholdUnit } from '../../monitoring/alert.ts';
import { type KindOfProblem, limitOf } from './kinds.ts';
import type { Tracks } from './tracks.ts';

export const minute = 60_000;
/**
 * Rates are computed over this span, or over a shorter span after a start. An alert waits longer; a reader of the page should not
 * have to wait as long.
 */
export const rateMs = 2 * minute;
/** A counter that has not grown for this long has paused: pages are read at least once a minute. */
export const leastPauseMs = 75_000;
export const longMs = 10 * minute;

/** The data that a condition is evaluated with. */
export interface Judged {
  tracks: Tracks;
  /** Wall clock. */
  nowMs: number;
  /** The span over which rates are computed. */
  spanMs: number;
}

/** A counter: the name and the key of its track. */
export type Counter = readonly [name: string, key: string];

/** A limit on a value of the service: the condition of an alert, evaluated with the agent's own values. */
export interface Condition {
  kind: KindOfProblem;
  /** The track whose keys are judged. */
  of: string;
  /** The value of a key; undefined if it is not known or there is too little traffic. */
  value(key: string, judged: Judged): number | undefined;
  limit: number;
  unit: ThresholdUnit;
  /** The words after the number, such as `item|items a minute`: `item` is the singular, `items` the plural. */
  noun: string;
  /** Multiplies the number for readers, such as 60 for a rate per minute. */
  shownTimes?: number;
  /** A further condition for the beginning of a problem. A problem that has begun lasts until its value is within the limit. */
  begins?: {
    if(judged: Judged): boolean;
    /** A clause that follows the noun while `if` holds. */
    clause: string;
  };
  /** How long the value must be above the limit before there is a problem. */
  forMs?: number;
  /** How long the value has been above the limit already when it is first seen: the span of a minimum over time. */
  heldMs?: number;
  /** The span over which rates are computed. Default: `rateMs`. */
  spanMs?: number;
  /**
   * The counter of the events that show the problem, which lasts from the first event to the last. Its pauses separate one problem
   * from the next: the window of a rate may contain both. Default: `of`, for a condition on an increase.
   */
  counts?: string | ((key: string, judged: Judged) => Counter);
  /**
   * A counter that has not grown for this long has paused, ms. Default: `leastPauseMs`, for a counter that grew so often that its
   * pause is not due to chance.
   */
  pauseMs?: number;
  /** The span of a condition on an increase. */
  countedMs?: number;
}

/** The least number of calls per second for which a share means something. */
const leastTraffic = 0.2;

export function share(part: number, whole: number | undefined): number | undefined {
  if (whole === undefined || whole < leastTraffic) return undefined;
  // Series that the role's reporter lost may have counted requests. Each failed call was a request, too.
  return part / Math.max(part, whole);
}

const rateOf =
  (name: string): Condition['value'] =>
  (key, { tracks, spanMs }) =>
    tracks.rate(name, key, spanMs);

/** A condition on the rate of a counter. */
export const onRateOf = (name: string) => ({ of: name, value: rateOf(name), counts: name });

export const shareOf =
  (part: string, whole: string): Condition['value'] =>
  (key, { tracks, spanMs }) =>
    share(tracks.rate(part, key, spanMs) ?? 0, tracks.rate(whole, key, spanMs));

export const none = { limit: 0, unit: 'none' } as const;
export const limited = (alert: Parameters<typeof limitOf>[0], unit: ThresholdUnit = 'none') => ({
  limit: limitOf(alert),
  unit,
});
