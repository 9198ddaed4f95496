import type { FamilyView, Kind, SeriesView, View } from '../../core/model.ts';
import type { HostedFailureReason } from '../../core/reasons.ts';

/** Format of a batch's body: an OTLP export request, or a remote write request of version 1.0 or 2.0. */
export const batchFormats = ['otlp', 'rw1', 'rw2'] as const;
export type BatchFormat = (typeof batchFormats)[number];

/** The points of one request, encoded. */
export interface Batch {
  readonly format: BatchFormat;
  /** Number of samples (remote write) or data points (OTLP). */
  readonly points: number;
  /** Wall clock, ms: the time of the report that the batch belongs to. */
  readonly timeMs: number;
  /** Request body: protobuf, compressed. */
  readonly body: Buffer;
}

/** A series that the last report had and this one does not. */
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
  /** Send the same points as remote write 1.0. */
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
  judge(answer: ReceiverAnswer, batch: Batch): DeliveryVerdict;
  /** Splits a batch in two; returns none for a batch of one point. Rejects with `RangeError` if the body is corrupt. */
  split(batch: Batch): Promise<readonly Batch[]>;
  /**
   * Re-encodes a batch for the version that the receiver understands, or for the older version if it has just
   * refused this one. Returns the same batch if nothing changes. Rejects with `RangeError` if the body is corrupt.
   */
  convert(batch: Batch, wasRefused: boolean): Promise<Batch>;
}

function failureReason(status: number): HostedFailureReason {
  if (status === 429) return 'throttled';
  if (status >= 500) return 'server_error';
  return status >= 300 && status < 400 ? 'redirect' : 'rejected';
}

/**
 * The verdict on a response other than 2xx, for the cases that both protocols treat alike. Redirects are not
 * followed, because that would send credentials to another host. A redirect says nothing about the batch, so it
 * is retried until the configuration or the receiver is fixed.
 */
export function verdictOfFailure(status: number, isRetryable: boolean, points: number): DeliveryVerdict {
  const reason = failureReason(status);
  return isRetryable || reason === 'redirect'
    ? { kind: 'retry', reason }
    : { kind: 'rejected', reason, lost: points };
}

/** The agent's identity in what it sends. */
export interface Origin {
  /** Value of `instance` (OTLP: `service.instance.id`). */
  readonly instance: string;
  /** OTLP's `host.name`. */
  readonly hostName: string;
  /** The agent's version. */
  readonly version: string;
  /** Prefix of every metric name, sanitized; `''` for none. */
  readonly prefix: string;
  /** Whether a series shows totals that its sender began before the agent first read them, such as a scraped page's. */
  hasExternalTotals(series: SeriesView): boolean;
}

/** Value of `job` (OTLP: `service.name`): the role for relayed series, `svc-agent` for all others. */
export function jobOf({ relayed, service }: SeriesView): string {
  return relayed && service !== '' ? service : 'svc-agent';
}

const totalKinds: ReadonlySet<Kind> = new Set<Kind>(['counter', 'histogram', 'summary']);

/**
 * Start time of a series' totals, ms since the epoch. 0 means that it has none: a gauge, or a total whose
 * beginning the agent did not see. An invented start time would make a receiver that trusts it count the whole
 * total again after each restart of the agent.
 */
export function startTimeOf(origin: Origin, kind: Kind, series: SeriesView, timeMs: number): number {
  const isKnown = totalKinds.has(kind) && series.startMs <= timeMs && !origin.hasExternalTotals(series);
  return isKnown ? Math.floor(series.startMs) : 0;
}
