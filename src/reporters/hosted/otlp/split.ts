import { fieldsOf } from '../../../core/protobuf-fields.ts';
import { createRequest, dataFields, type Place } from './request.ts';

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
