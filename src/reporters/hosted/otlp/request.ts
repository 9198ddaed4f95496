import { fieldsOf } from '../../../core/protobuf-fields.ts';
import { createWriter, type Writer } from '../wire/protobuf.ts';

/** Field numbers of `Metric` that hold its points, by type of data. */
export const dataFields = { gauge: 5, sum: 7, histogram: 9, summary: 11 } as const;

/** The metric that points belong to; consecutive points with the same object share one `Metric`. */
export interface MetricContext {
  /** A `Resource` message; the same object for all metrics of a resource. */
  readonly resource: Buffer;
  /** The encoded name and description. */
  readonly head: Buffer;
  /** The field number of its data. */
  readonly data: number;
  /** The encoded temporality and monotonicity, which follow the points. */
  readonly tail: Buffer;
}

/** Builds an `ExportMetricsServiceRequest`. */
export interface RequestBuilder {
  readonly points: number;
  readonly bytes: number;
  /** Begins a point: write its fields to the returned writer, then call `endPoint`. */
  beginPoint(metric: MetricContext): Writer;
  endPoint(): void;
  /** Returns the message, uncompressed, and starts a new request. */
  take(): Buffer;
}

/** `scope`: an `InstrumentationScope` message. Messages: github.com/open-telemetry/opentelemetry-proto. */
export function createRequestBuilder(scope: Buffer): RequestBuilder {
  const writer = createWriter();
  let metric: MetricContext | undefined;
  let points = 0;

  const closeMetric = (): void => {
    if (!metric) return;
    writer.raw(metric.tail);
    writer.close();
    writer.close();
  };
  const closeResource = (): void => {
    if (!metric) return;
    writer.close();
    writer.close();
  };
  const move = (next: MetricContext | undefined): void => {
    const staysWithin = metric !== undefined && next?.resource === metric.resource;
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
    metric = next;
  };

  return {
    get points() {
      return points;
    },
    get bytes() {
      return writer.bytes;
    },
    beginPoint(next) {
      if (next !== metric) move(next);
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

/** An encoded point and its metric. */
interface Point {
  readonly metric: MetricContext;
  readonly fields: Buffer;
}

const dataNumbers: ReadonlySet<number> = new Set(Object.values(dataFields));

function pointsOfMetric(message: Buffer, resource: Buffer): Point[] {
  const head: Buffer[] = [];
  const points: Point[] = [];
  for (const { field, bytes, raw } of fieldsOf(message)) {
    if (!dataNumbers.has(field)) {
      head.push(raw);
      continue;
    }
    const inner = [...fieldsOf(bytes)];
    const tail = Buffer.concat(inner.filter((part) => part.field !== 1).map((part) => part.raw));
    const metric: MetricContext = { resource, head: Buffer.concat(head), data: field, tail };
    for (const part of inner) if (part.field === 1) points.push({ metric, fields: part.bytes });
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

/** Splits a request in two; returns none for a request of one point. Throws `RangeError` if it is corrupt. */
export function halvesOf(message: Buffer, scope: Buffer): { message: Buffer; points: number }[] {
  const points = pointsOf(message);
  if (points.length < 2) return [];
  const middle = Math.ceil(points.length / 2);
  const request = createRequestBuilder(scope);
  return [points.slice(0, middle), points.slice(middle)].map((half) => {
    for (const { metric, fields } of half) {
      request.beginPoint(metric).raw(fields);
      request.endPoint();
    }
    return { message: request.take(), points: half.length };
  });
}
