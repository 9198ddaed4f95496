import type { ThresholdUnit } from '../../monitoring/alert.ts';
import { type KindOfProblem, limitOf } from './kinds.ts';
import type { Tracks } from './tracks.ts';

export const minute = 60_000;
/** Rates are taken over this, and over less after a start: an alert waits longer, a reader of the page should not. */
export const rateMs = 2 * minute;
export const longMs = 10 * minute;

/** What a condition is judged by. */
export interface Judged {
  tracks: Tracks;
  /** Wall clock. */
  nowMs: number;
  /** What rates are taken over. */
  spanMs: number;
}

/** A limit on a value of the service: the condition of an alert, by the agent's own values. */
export interface Condition {
  kind: KindOfProblem;
  /** The track whose keys are judged. */
  of: string;
  /** Undefined: not known, or too little traffic to judge. */
  value(key: string, judged: Judged): number | undefined;
  limit: number;
  unit: ThresholdUnit;
  /** Behind the number, such as `persistence errors a minute`. */
  noun: string;
  /** Multiplies the number for readers, such as 60 for a rate per minute. */
  shownTimes?: number;
  /** Without this no problem begins; one that has begun goes on until its value is within the limit. */
  begins?: {
    if(judged: Judged): boolean;
    /** Behind the noun while it holds. */
    clause: string;
  };
  /** How long it must hold before it is a problem. */
  forMs?: number;
  /** How long it has held already when it is first seen: the span of a least value. */
  heldMs?: number;
  /** What its rates are taken over. Default: `rateMs`. */
  spanMs?: number;
  /** The counter by whose pauses one problem is told from the next: a rate has both in its window. */
  counts?: string;
  /** The span of a condition on an increase, which begins with the first step within that span. */
  countedMs?: number;
}

/** Calls per second below which a share means nothing. */
const leastTraffic = 0.2;

export function share(part: number, whole: number | undefined): number | undefined {
  if (whole === undefined || whole < leastTraffic) return undefined;
  // Requests may be missing for series that the role's reporter lost; each failed call was a request.
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
