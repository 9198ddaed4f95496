import type { Kind, SeriesView } from '../../../core/model.ts';
import { createProtobufWriter, fieldsOf, type ProtobufWriter } from '../../../core/protobuf.ts';
import { jobOf, type Origin } from '../protocol.ts';

/** Numbers of the fields of `Metric` that contain its points, by type of data. */
const dataFields = { gauge: 5, sum: 7, histogram: 9, summary: 11 } as const;

/** The metric to which points belong; consecutive points with the same object share one `Metric`. */
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
interface RequestBuilder {
  readonly points: number;
  readonly bytes: number;
  /** Begins a point: write its fields to the returned writer, then call `endPoint`. */
  beginPoint(metric: MetricContext): ProtobufWriter;
  endPoint(): void;
  /** Returns the message, uncompressed, and starts a new request. */
  take(): Buffer;
}

/** Creates a builder. `scope` is an `InstrumentationScope` message. Messages: github.com/open-telemetry/opentelemetry-proto. */
export function createRequestBuilder(scope: Buffer): RequestBuilder {
  const writer = createProtobufWriter();
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

/** Splits a request in two; returns no requests for a request of one point. Throws `RangeError` if it is corrupt. */
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

const cumulative = 2;
const noRecordedValue = 1;
/** Field numbers that differ between `NumberDataPoint`, `HistogramDataPoint` and `SummaryDataPoint`. */
const attributesField = { number: 7, histogram: 9, summary: 7 } as const;
const flagsField = { number: 8, histogram: 10, summary: 8 } as const;

export type PointType = keyof typeof attributesField;

/** How each kind is encoded. OTLP has no untyped metrics, so they are sent as gauges. */
export const pointTypes: Readonly<Record<Kind, { type: PointType; data: number; tail: Buffer }>> = {
  counter: { type: 'number', data: dataFields.sum, tail: tailOf(true) },
  gauge: { type: 'number', data: dataFields.gauge, tail: Buffer.alloc(0) },
  untyped: { type: 'number', data: dataFields.gauge, tail: Buffer.alloc(0) },
  histogram: { type: 'histogram', data: dataFields.histogram, tail: tailOf(false) },
  summary: { type: 'summary', data: dataFields.summary, tail: Buffer.alloc(0) },
};

function tailOf(isMonotonic: boolean): Buffer {
  const writer = createProtobufWriter(16);
  writer.varint(2, cumulative);
  if (isMonotonic) writer.varint(3, 1);
  return writer.take();
}

function attribute(writer: ProtobufWriter, field: number, name: string, value: string): void {
  writer.open(field);
  writer.text(1, name);
  writer.open(2);
  writer.text(1, value);
  writer.close();
  writer.close();
}

/** A series' labels as encoded attributes of its points. */
export function attributesOf(type: PointType, { labels }: SeriesView): Buffer {
  const writer = createProtobufWriter(512);
  for (const [name, value] of labels) attribute(writer, attributesField[type], name, value);
  return writer.take();
}

/** The `Resource` of a series. */
export function resourceOf(series: SeriesView, { instance, hostName }: Origin): Buffer {
  const writer = createProtobufWriter(256);
  attribute(writer, 1, 'service.name', jobOf(series));
  if (instance !== '') attribute(writer, 1, 'service.instance.id', instance);
  if (hostName !== '') attribute(writer, 1, 'host.name', hostName);
  return writer.take();
}

/** Name and description of a `Metric`. There is no unit, because some receivers append it to the name. */
export function headOf(name: string, help: string): Buffer {
  const writer = createProtobufWriter(256);
  writer.text(1, name);
  if (help !== '') writer.text(2, help);
  return writer.take();
}

/** A count for OTLP, which is a non-negative integer. */
function whole(count: number): number {
  return count > 0 && count < Number.MAX_SAFE_INTEGER ? Math.round(count) : 0;
}

/** Converts the cumulative counts of `le` to counts per bucket, whose sum is the histogram's count. */
function writeHistogram(
  writer: ProtobufWriter,
  { at, bounds, hasSum }: SeriesView,
  numbers: Float64Array,
): void {
  const infinite = at + bounds.length;
  let total = 0;
  writer.open(6);
  for (let cell = at; cell <= infinite; cell++) {
    const upTo = Math.max(total, whole(numbers[cell]!));
    writer.packedFixed64(upTo - total);
    total = upTo;
  }
  writer.close();
  writer.fixed64(4, total);
  if (hasSum) writer.double(5, numbers[infinite + 1]!);
  writer.open(7);
  for (const bound of bounds) writer.packedDouble(Number(bound));
  writer.close();
}

function writeSummary(
  writer: ProtobufWriter,
  { at, bounds, hasSum, hasCount }: SeriesView,
  numbers: Float64Array,
): void {
  const end = at + bounds.length;
  if (hasCount) writer.fixed64(4, whole(numbers[end + 1]!));
  if (hasSum) writer.double(5, numbers[end]!);
  for (const [i, quantile] of bounds.entries()) {
    writer.open(6);
    writer.double(1, Number(quantile));
    writer.double(2, numbers[at + i]!);
    writer.close();
  }
}

/** Time and start time of a point, ms; `startMs` is 0 if it has no start time. */
interface Times {
  readonly timeMs: number;
  readonly startMs: number;
}

/** Writes the fields of one point; if `numbers` is undefined, the series has ended. */
export function writePoint(
  writer: ProtobufWriter,
  type: PointType,
  { series, numbers, attributes }: { series: SeriesView; numbers?: Float64Array; attributes: Buffer },
  { timeMs, startMs }: Times,
): void {
  writer.raw(attributes);
  if (startMs > 0) writer.nanoseconds(2, startMs);
  writer.nanoseconds(3, timeMs);
  if (!numbers) writer.varint(flagsField[type], noRecordedValue);
  else if (type === 'number') writer.double(4, numbers[series.at]!);
  else if (type === 'histogram') writeHistogram(writer, series, numbers);
  else writeSummary(writer, series, numbers);
}
