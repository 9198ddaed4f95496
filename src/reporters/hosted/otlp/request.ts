import { fieldsOf } from '../../../core/protobuf-fields.ts';
import { createWriter, type Writer } from '../wire/protobuf.ts';

/** Where a metric's points lie in `Metric`, by the message that holds them. */
export const dataFields = { gauge: 5, sum: 7, histogram: 9, summary: 11 } as const;

/** What points of one metric have around them; points of the same object stand in one `Metric`. */
export interface Place {
  /** A `Resource` message; one object for all places of a resource. */
  readonly resource: Buffer;
  /** Fields of `Metric` before its data: name and description. */
  readonly head: Buffer;
  /** The field of its data. */
  readonly data: number;
  /** Fields of the data behind its points: temporality, monotonicity. */
  readonly tail: Buffer;
}

/** An `ExportMetricsServiceRequest` in the making. */
export interface Request {
  readonly points: number;
  readonly bytes: number;
  /** Begins a point; its fields go to the writer, then `endPoint`. */
  beginPoint(place: Place): Writer;
  endPoint(): void;
  /** The message, not compressed; the request begins anew. */
  take(): Buffer;
}

/** `scope`: an `InstrumentationScope` message. Messages: github.com/open-telemetry/opentelemetry-proto. */
export function createRequest(scope: Buffer): Request {
  const writer = createWriter();
  let place: Place | undefined;
  let points = 0;

  const closeMetric = (): void => {
    if (!place) return;
    writer.raw(place.tail);
    writer.close();
    writer.close();
  };
  const closeResource = (): void => {
    if (!place) return;
    writer.close();
    writer.close();
  };
  const move = (next: Place | undefined): void => {
    const staysWithin = place !== undefined && next?.resource === place.resource;
    closeMetric();
    if (!staysWithin) closeResource();
    if (next && !staysWithin) {
      writer.open(1);
      writer.chunk(1, next.resource);
      writer.open(2);
      writer.chunk(1, scope);
    }
    if (next) {
      writer.open(2);
      writer.raw(next.head);
      writer.open(next.data);
    }
    place = next;
  };

  return {
    get points() {
      return points;
    },
    get bytes() {
      return writer.bytes;
    },
    beginPoint(next) {
      if (next !== place) move(next);
      points += 1;
      writer.open(1);
      return writer;
    },
    endPoint: () => writer.close(),
    take() {
      move(undefined);
      points = 0;
      return writer.take();
    },
  };
}

/** A point of a request, with what stands around it. */
interface Point {
  readonly place: Place;
  readonly fields: Buffer;
}

const dataNumbers: ReadonlySet<number> = new Set(Object.values(dataFields));

function pointsOfMetric(metric: Buffer, resource: Buffer): Point[] {
  const head: Buffer[] = [];
  const points: Point[] = [];
  for (const { field, bytes, raw } of fieldsOf(metric)) {
    if (!dataNumbers.has(field)) {
      head.push(raw);
      continue;
    }
    const inner = [...fieldsOf(bytes)];
    const tail = Buffer.concat(inner.filter((part) => part.field !== 1).map((part) => part.raw));
    const place: Place = { resource, head: Buffer.concat(head), data: field, tail };
    for (const part of inner) if (part.field === 1) points.push({ place, fields: part.bytes });
  }
  return points;
}

function pointsOf(message: Buffer): Point[] {
  const points: Point[] = [];
  for (const { bytes: resourceMetrics } of fieldsOf(message)) {
    const parts = [...fieldsOf(resourceMetrics)];
    const resource = parts.find(({ field }) => field === 1)?.bytes ?? Buffer.alloc(0);
    for (const { field, bytes: scopeMetrics } of parts) {
      if (field !== 2) continue;
      for (const { field: part, bytes } of fieldsOf(scopeMetrics)) {
        if (part === 2) points.push(...pointsOfMetric(bytes, resource));
      }
    }
  }
  return points;
}

/** The points of a request of ours in two requests; none if it has only one. Throws `RangeError` on what is none. */
export function halvesOf(message: Buffer, scope: Buffer): { message: Buffer; points: number }[] {
  const points = pointsOf(message);
  if (points.length < 2) return [];
  const middle = Math.ceil(points.length / 2);
  const request = createRequest(scope);
  return [points.slice(0, middle), points.slice(middle)].map((half) => {
    for (const { place, fields } of half) {
      request.beginPoint(place).raw(fields);
      request.endPoint();
    }
    return { message: request.take(), points: half.length };
  });
}
