import type { FamilyView, Kind, SeriesView, View } from '../../core/model.ts';
import type { Clock } from '../../core/ports.ts';
import type { HostedFailureReason } from '../../core/reasons.ts';

/** Format of a batch's body: an OTLP export request, or a remote write request of version 1.0 or 2.0. */
export const batchFormats = ['otlp', 'rw1', 'rw2'] as const;
export type BatchFormat = (typeof batchFormats)[number];

/** The points of one request, encoded. */
export interface Batch {
  readonly format: BatchFormat;
  /** Number of samples (remote write) or data points (OTLP). */
  readonly points: number;
  /** The time of the report to which the batch belongs, wall clock, ms. */
  readonly timeMs: number;
  /** The request body: protobuf, compressed. */
  readonly body: Buffer;
}

/** A series that the last report had and this report does not have. */
export interface VanishedSeries {
  readonly family: FamilyView;
  readonly series: SeriesView;
}

/** What is reported once per interval. */
export interface Report {
  readonly view: View;
  readonly vanished: readonly VanishedSeries[];
  readonly timeMs: number;
}

/** A receiver's HTTP response. */
export interface ReceiverAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  /** The first 64 KiB of the body. */
  readonly body: Buffer;
}

/** What a response means for the batch that was sent. */
export type DeliveryVerdict =
  | { readonly kind: 'accepted' }
  /** The receiver accepted the batch except for `lost` points. */
  | { readonly kind: 'partial'; readonly lost: number }
  | { readonly kind: 'retry'; readonly reason: HostedFailureReason }
  /** The request was too large. */
  | { readonly kind: 'too_large' }
  /** The same points must be sent as remote write 1.0. */
  | { readonly kind: 'downgrade' }
  /** The receiver will never accept the batch; `lost` points are dropped. */
  | { readonly kind: 'rejected'; readonly reason: HostedFailureReason; readonly lost: number };

/** A wire protocol: encodes reports as batches and interprets responses. */
export interface Protocol {
  /** Whether this protocol can send a batch of this format. The queue may hold batches of an earlier configuration. */
  speaks(format: BatchFormat): boolean;
  /** Whether gauges are marked as ended when the reporter stops. */
  readonly endsGaugesOnStop: boolean;
  /** Encodes a report in batches within the request limits. Yields to the event loop every 2 ms. */
  encode(report: Report): AsyncIterable<Batch>;
  headers(batch: Batch): Readonly<Record<string, string>>;
  verdictOf(answer: ReceiverAnswer, batch: Batch): DeliveryVerdict;
  /** Splits a batch in two; returns no batches for a batch of one point. Rejects with `RangeError` if the body is corrupt. */
  split(batch: Batch): Promise<readonly Batch[]>;
  /**
   * Re-encodes a batch for the version that the receiver understands, or for the older version if it has just refused the newer
   * version. Returns the same batch if nothing changes. Rejects with `RangeError` if the body is corrupt.
   */
  convert(batch: Batch, wasRefused: boolean): Promise<Batch>;
}

/** The credentials, the path or the time of the request were wrong. Another request with the same batch may be accepted. */
const unrelatedStatus: ReadonlySet<number> = new Set([401, 403, 404, 407, 408, 425, 429]);

function failureReason(status: number): HostedFailureReason {
  if (status === 429) return 'throttled';
  if (status === 401 || status === 403 || status === 407) return 'credentials';
  if (status >= 500) return 'server_error';
  return status >= 300 && status < 400 ? 'redirect' : 'rejected';
}

/**
 * The verdict on a response other than 2xx, for the cases that both protocols treat in the same way. Redirects are not followed,
 * because that would send credentials to another host. A batch is sent again unless the receiver refuses its content: while a
 * token has expired or a gateway lacks a route, the queue keeps the data, although both specifications (OTLP: Failures; Remote
 * Write: Retries & Backoff) let a sender drop it.
 */
export function verdictOfFailure(status: number, points: number): DeliveryVerdict {
  const reason = failureReason(status);
  return status >= 500 || unrelatedStatus.has(status) || reason === 'redirect'
    ? { kind: 'retry', reason }
    : { kind: 'rejected', reason, lost: points };
}

/**
 * The verdict on a web page with a status of success; undefined for any other body. A proxy or a login page answered, so that
 * nobody took the batch. Such a page may begin with any tag or comment. A message of OTLP may begin with a line break and `<`, which
 * are its first field and a length, but no letter follows.
 */
export const verdictOfPage = ({ body }: ReceiverAnswer): DeliveryVerdict | undefined =>
  /^\s*<[!?a-z]/i.test(body.toString('utf8', 0, 1_000)) ? { kind: 'retry', reason: 'rejected' } : undefined;

/** The agent's identity in what it sends. */
export interface Origin {
  /** The value of `instance` (OTLP: `service.instance.id`). */
  readonly instance: string;
  /** The value of OTLP's `host.name`. */
  readonly hostName: string;
  /** The agent's version. */
  readonly version: string;
  /** The prefix of every metric name, sanitized; `''` for none. */
  readonly prefix: string;
  /** Whether a series shows totals that its sender began before the agent first read them, such as a scraped page's. */
  hasExternalTotals(series: SeriesView): boolean;
}

/** The value of `job` (OTLP: `service.name`): the role for relayed series, `svc-agent` for all others. */
export function jobOf({ relayed, service }: SeriesView): string {
  return relayed && service !== '' ? service : 'svc-agent';
}

const totalKinds: ReadonlySet<Kind> = new Set<Kind>(['counter', 'histogram', 'summary']);

/**
 * Start time of a series' totals, ms since the epoch. It is 0 for a gauge, and for a total whose beginning the agent did not see.
 * An invented start time would make a receiver that trusts it count the whole total again after each restart of the agent.
 */
export function startTimeOf(origin: Origin, kind: Kind, series: SeriesView, timeMs: number): number {
  const isKnown = totalKinds.has(kind) && series.startMs <= timeMs && !origin.hasExternalTotals(series);
  return isKnown ? Math.floor(series.startMs) : 0;
}

/**
 * How large a request may be. The limits adapt to the receiver: a size that it refused is not sent again for ten
 * minutes, so that one small limit costs a few refused requests and not a stream of them.
 */
export interface RequestLimits {
  /** The number of points in a new request. */
  readonly points: number;
  /** The number of bytes in a new request before compression. */
  readonly bytes: number;
  /** Whether a request with this number of points is below the size that the receiver refused. */
  allows(points: number): boolean;
  accepted(points: number): void;
  /**
   * Must be called when the receiver refused a request with this number of points. `split`: halves may be accepted. `drop`: the
   * request is so small that a smaller request is not worth a try.
   */
  refused(points: number): 'split' | 'drop';
}

/** Encoding this many points takes about 2 ms of the event loop. */
const mostPoints = 5_000;
/** A size well below what receivers accept. */
const mostBytes = 1_048_576;
/** A receiver that has accepted nothing and refuses this few points refuses everything. */
const leastPoints = 8;
const rememberMs = 600_000;

export function createRequestLimits(clock: Pick<Clock, 'monotonicMs'>): RequestLimits {
  let points = mostPoints;
  let refusedPoints = Number.POSITIVE_INFINITY;
  let acceptedPoints = 0;
  let refusedMs = 0;

  /** Allows larger requests again after a while: the receiver may have been reconfigured. */
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
        // The receiver has accepted larger requests, so the cause is in this request. If the receiver's limit did shrink, this
        // adapts to it.
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
