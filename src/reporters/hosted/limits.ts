/** How large a request may be. */
export interface RequestLimits {
  readonly points: number;
  readonly bytes: number;
  /** The receiver found a request of so many points too large. */
  tooLarge(points: number): void;
}

/** Points of a request at most: packing them holds up the event loop for about 2 ms. */
const mostPoints = 5_000;
/** Bytes of a request at most, before compression: well below what receivers take. */
const mostBytes = 1_048_576;
const leastPoints = 100;

/** Limits that shrink for good when the receiver says 413, so that only the first requests have to be split. */
export function createRequestLimits(): RequestLimits {
  let points = mostPoints;
  return {
    get points() {
      return points;
    },
    bytes: mostBytes,
    tooLarge(sent) {
      points = Math.max(leastPoints, Math.min(points, Math.ceil(sent / 2)));
    },
  };
}
