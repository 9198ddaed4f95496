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
