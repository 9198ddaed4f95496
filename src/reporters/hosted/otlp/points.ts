import type { Kind, SeriesView } from '../../../core/model.ts';
import { jobOf, type Origin } from '../protocol.ts';
import { createWriter, type Writer } from '../wire/protobuf.ts';
import { dataFields } from './request.ts';

const cumulative = 2;
const noRecordedValue = 1;
/** Field numbers that differ between `NumberDataPoint`, `HistogramDataPoint` and `SummaryDataPoint`. */
const attributesField = { number: 7, histogram: 9, summary: 7 } as const;
const flagsField = { number: 8, histogram: 10, summary: 8 } as const;

export type PointType = keyof typeof attributesField;

/** How each kind is encoded. OTLP has no untyped metrics: they are sent as gauges. */
export const pointTypes: Readonly<Record<Kind, { type: PointType; data: number; tail: Buffer }>> = {
  counter: { type: 'number', data: dataFields.sum, tail: tailOf(true) },
  gauge: { type: 'number', data: dataFields.gauge, tail: Buffer.alloc(0) },
  untyped: { type: 'number', data: dataFields.gauge, tail: Buffer.alloc(0) },
  histogram: { type: 'histogram', data: dataFields.histogram, tail: tailOf(false) },
  summary: { type: 'summary', data: dataFields.summary, tail: Buffer.alloc(0) },
};

function tailOf(isMonotonic: boolean): Buffer {
  const writer = createWriter(16);
  writer.varint(2, cumulative);
  if (isMonotonic) writer.varint(3, 1);
  return writer.take();
}

function attribute(writer: Writer, field: number, name: string, value: string): void {
  writer.open(field);
  writer.text(1, name);
  writer.open(2);
  writer.text(1, value);
  writer.close();
  writer.close();
}

/** A series' labels as encoded attributes of its points. */
export function attributesOf(type: PointType, { labels }: SeriesView): Buffer {
  const writer = createWriter(512);
  for (const [name, value] of labels) attribute(writer, attributesField[type], name, value);
  return writer.take();
}

/** The `Resource` of a series. */
export function resourceOf(series: SeriesView, { instance, hostName }: Origin): Buffer {
  const writer = createWriter(256);
  attribute(writer, 1, 'service.name', jobOf(series));
  if (instance !== '') attribute(writer, 1, 'service.instance.id', instance);
  if (hostName !== '') attribute(writer, 1, 'host.name', hostName);
  return writer.take();
}

/** Name and description of a `Metric`. There is no unit, because some receivers append it to the name. */
export function headOf(name: string, help: string): Buffer {
  const writer = createWriter(256);
  writer.text(1, name);
  if (help !== '') writer.text(2, help);
  return writer.take();
}

/** A count for OTLP: a non-negative integer. */
function whole(count: number): number {
  return count > 0 && count < Number.MAX_SAFE_INTEGER ? Math.round(count) : 0;
}

/** Converts the cumulative counts of `le` to counts per bucket, whose sum is the histogram's count. */
function writeHistogram(writer: Writer, { at, bounds, hasSum }: SeriesView, numbers: Float64Array): void {
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
  writer: Writer,
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

/** Time and start time of a point, ms; `startMs` 0: it has none. */
export interface Times {
  readonly timeMs: number;
  readonly startMs: number;
}

/** Writes the fields of one point; `numbers` undefined: the series has ended. */
export function writePoint(
  writer: Writer,
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
