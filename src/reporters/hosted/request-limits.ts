import type { Clock } from '../../core/ports.ts';

/**
 * How large a request may be. The limits adapt to the receiver: a size that it refused is not sent again for ten
 * minutes, so that one small limit costs a few refused requests and not a stream of them.
 */
export interface RequestLimits {
  /** Points of a new request. */
  readonly points: number;
  /** Bytes of a new request before compression. */
  readonly bytes: number;
  /** Whether a request of so many points is below the size that the receiver refused. */
  allows(points: number): boolean;
  accepted(points: number): void;
  /**
   * The receiver refused a request of so many points. `split`: halves may pass. `drop`: the request is so small
   * that no smaller one is worth a try.
   */
  refused(points: number): 'split' | 'drop';
}

/** Encoding so many points holds up the event loop for about 2 ms. */
const mostPoints = 5_000;
/** Well below what receivers accept. */
const mostBytes = 1_048_576;
/** A receiver that has accepted nothing and refuses so few points refuses everything. */
const leastPoints = 8;
const rememberMs = 600_000;

export function createRequestLimits(clock: Pick<Clock, 'monotonicMs'>): RequestLimits {
  let points = mostPoints;
  let refusedPoints = Number.POSITIVE_INFINITY;
  let acceptedPoints = 0;
  let refusedMs = 0;

  /** Tries larger requests again after a while: the receiver may have been reconfigured. */
  const relax = (): void => {
    if (points === mostPoints || clock.monotonicMs() - refusedMs < rememberMs) return;
    refusedMs = clock.monotonicMs();
    points = Math.min(mostPoints, points * 2);
    refusedPoints = Number.POSITIVE_INFINITY;
  };
  return {
    get points() {
      relax();
      return points;
    },
    bytes: mostBytes,
    allows(count) {
      relax();
      return count < refusedPoints || count <= leastPoints;
    },
    accepted(count) {
      acceptedPoints = Math.max(acceptedPoints, count);
      refusedPoints = Math.max(refusedPoints, count + 1);
    },
    refused(count) {
      if (count === 1) return 'drop';
      if (count <= acceptedPoints) {
        // It has accepted larger ones: the cause is in this request. If the limit did shrink, this adapts.
        acceptedPoints = count - 1;
        return 'split';
      }
      refusedMs = clock.monotonicMs();
      refusedPoints = Math.min(refusedPoints, count);
      points = Math.max(leastPoints, Math.min(points, Math.ceil(count / 2)));
      return count > leastPoints ? 'split' : 'drop';
    },
  };
}
