import type { FamilyView, SeriesView, View } from '../../core/model.ts';
import type { HostedFailureReason } from '../../core/reasons.ts';

/** What a batch's body is: OTLP's export request, or remote write's of version 1.0 or 2.0. */
export const forms = ['otlp', 'rw1', 'rw2'] as const;
export type Form = (typeof forms)[number];

/** One request's worth of points, ready to leave. */
export interface Batch {
  readonly form: Form;
  /** Samples (remote write) or data points (OTLP) in it. */
  readonly points: number;
  /** Wall clock, ms: when its picture was taken. */
  readonly timeMs: number;
  /** As it is sent: protobuf, compressed. */
  readonly body: Buffer;
}

/** A series that was reported last time and is there no more. */
export interface Vanished {
  readonly family: FamilyView;
  readonly series: SeriesView;
}

/** What one interval has to say. */
export interface Picture {
  readonly view: View;
  readonly vanished: readonly Vanished[];
  readonly timeMs: number;
}

/** What a receiver answered, as far as it matters. */
export interface Answer {
  readonly status: number;
  header(name: string): string | undefined;
  /** The beginning of its body. */
  readonly body: Buffer;
}

/** What an answer means for the batch that it is about. */
export type Verdict =
  | { readonly kind: 'taken' }
  /** The receiver took it, but said that it left out so many points. */
  | { readonly kind: 'taken_in_part'; readonly lost: number }
  | { readonly kind: 'again'; readonly reason: HostedFailureReason }
  | { readonly kind: 'split' }
  /** The same points in remote write 1.0. */
  | { readonly kind: 'older' }
  /** Never to be taken; so many points are lost. */
  | { readonly kind: 'refused'; readonly reason: HostedFailureReason; readonly lost: number };

/** One wire protocol: how a picture becomes batches, and what the other end's answers mean. */
export interface Protocol {
  /** Whether batches of this form are of this protocol: an earlier configuration may have left others. */
  speaks(form: Form): boolean;
  /** The batches of a picture, each at most as large as the receiver is known to take. Other work gets its turn in between. */
  encode(picture: Picture): AsyncIterable<Batch>;
  headers(batch: Batch): Readonly<Record<string, string>>;
  judge(answer: Answer, batch: Batch): Verdict;
  /** The points of a batch in two; none if it has only one. Rejects with `RangeError` on a body that cannot be read. */
  split(batch: Batch): Promise<readonly Batch[]>;
  /**
   * A batch in the form that the receiver is known to take, or in the older one if it has refused this one; the
   * same batch if there is nothing to change. Rejects with `RangeError` on a body that cannot be read.
   */
  inKnownForm(batch: Batch, isRefused: boolean): Promise<Batch>;
}

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

/** The value of `job` (OTLP: `service.name`): the role for relayed series, the agent for all others. */
export function jobOf({ relayed, service }: SeriesView): string {
  return relayed && service !== '' ? service : 'svc-agent';
}

/** Who reports. */
export interface Origin {
  /** The value of `instance` (OTLP: `service.instance.id`). */
  readonly instance: string;
  /** OTLP's `host.name`. */
  readonly hostName: string;
  /** The agent's version. */
  readonly version: string;
  /** In front of every name, sanitized; `''` for none. */
  readonly prefix: string;
}

function reasonOf(status: number): HostedFailureReason {
  if (status === 429) return 'throttled';
  if (status >= 500) return 'server_error';
  return status >= 300 && status < 400 ? 'redirect' : 'rejected';
}

/**
 * What an answer that is no success means where the protocol has nothing special to say. Redirects are not
 * followed (they would carry credentials elsewhere) and say nothing about the batch: it waits until the
 * configuration or the receiver is put right.
 */
export function verdictOfFailure(status: number, isRetried: boolean, points: number): Verdict {
  const reason = reasonOf(status);
  return isRetried || reason === 'redirect'
    ? { kind: 'again', reason }
    : { kind: 'refused', reason, lost: points };
}
