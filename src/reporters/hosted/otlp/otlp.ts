import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { FamilyView, SeriesView } from '../../../core/model.ts';
import { fieldsOf } from '../../../core/protobuf-fields.ts';
import { createPause } from '../../pacing.ts';
import {
  type Answer,
  type Batch,
  jobOf,
  type Origin,
  type Picture,
  type Protocol,
  type RequestLimits,
  type Verdict,
  verdictOfFailure,
} from '../protocol.ts';
import { createWriter } from '../wire/protobuf.ts';
import { attributesOf, headOf, resourceOf, shapes, writePoint } from './points.ts';
import { createRequest, halvesOf, type Place } from './request.ts';

const pack = promisify<Buffer, object, Buffer>(gzip);
const unpack = promisify<Buffer, Buffer>(gunzip);
const retriedStatus: ReadonlySet<number> = new Set([429, 502, 503, 504]);

function scopeOf({ version }: Origin): Buffer {
  const writer = createWriter(64);
  writer.text(1, 'svc-agent');
  writer.text(2, version);
  return writer.take();
}

/** `partial_success.rejected_data_points` of an `ExportMetricsServiceResponse`; 0 for what is none. */
function rejectedPoints({ body }: Answer): number {
  try {
    for (const { field, bytes } of fieldsOf(body)) {
      if (field !== 1) continue;
      for (const { field: part, value } of fieldsOf(bytes)) if (part === 1) return value;
    }
  } catch {
    // A success with a body of another kind is a success.
  }
  return 0;
}

/** Series of a picture by what they are the series of; within, families in their order. */
interface Group {
  readonly resource: Buffer;
  readonly families: { family: FamilyView; series: SeriesView[] }[];
}

function groupsOf(families: Iterable<readonly [FamilyView, SeriesView]>, origin: Origin): Iterable<Group> {
  const groups = new Map<string, Group>();
  for (const [family, series] of families) {
    const job = jobOf(series);
    const group = groups.get(job) ?? { resource: resourceOf(series, origin), families: [] };
    groups.set(job, group);
    const last = group.families.at(-1);
    if (last?.family === family) last.series.push(series);
    else group.families.push({ family, series: [series] });
  }
  return groups.values();
}

function* seriesOf(families: readonly FamilyView[]): Generator<readonly [FamilyView, SeriesView]> {
  for (const family of families) for (const series of family.series) yield [family, series];
}

/**
 * OTLP/HTTP with protobuf, gzip (opentelemetry.io/docs/specs/otlp): cumulative sums, gauges, explicit histograms
 * and summaries; a series that is gone gets one point with the flag NoRecordedValue, 1 ms before the picture.
 * Untyped goes as a gauge, weights of a histogram are rounded to whole counts, and a histogram's count is that
 * of its last bucket.
 */
export function createOtlp(origin: Origin, limits: RequestLimits): Protocol {
  const scope = scopeOf(origin);
  const attributes = new WeakMap<SeriesView, { shape: string; bytes: Buffer }>();

  const attributesFor = (shape: 'number' | 'histogram' | 'summary', series: SeriesView): Buffer => {
    const remembered = attributes.get(series);
    if (remembered?.shape === shape) return remembered.bytes;
    const bytes = attributesOf(shape, series);
    attributes.set(series, { shape, bytes });
    return bytes;
  };
  const startOf = ({ startMs }: SeriesView, { kind }: FamilyView, timeMs: number): number =>
    kind !== 'gauge' && kind !== 'untyped' && startMs <= timeMs ? Math.floor(startMs) : 0;

  async function* encodeGroups(groups: Iterable<Group>, picture: Picture, isEnd: boolean) {
    const request = createRequest(scope);
    const pause = createPause();
    const timeMs = isEnd ? picture.timeMs - 1 : picture.timeMs;
    const finish = async (): Promise<Batch> => {
      const { points } = request;
      const body = await pack(request.take(), { level: 1 });
      return { form: 'otlp', points, timeMs: picture.timeMs, body };
    };
    for (const { resource, families } of groups) {
      for (const { family, series: all } of families) {
        const { shape, data, tail } = shapes[family.kind];
        const place: Place = { resource, head: headOf(origin.prefix + family.name, family.help), data, tail };
        for (const series of all) {
          const numbers = isEnd ? undefined : picture.view.numbers(series);
          const point = { series, numbers, attributes: attributesFor(shape, series) };
          const startMs = isEnd ? 0 : startOf(series, family, timeMs);
          writePoint(request.beginPoint(place), shape, point, { timeMs, startMs });
          request.endPoint();
          if (request.points >= limits.points || request.bytes >= limits.bytes) yield await finish();
          if (pause.isDue()) await pause.rest();
        }
      }
    }
    if (request.points > 0) yield await finish();
  }

  const judgeSuccess = (answer: Answer): Verdict => {
    const lost = rejectedPoints(answer);
    return lost > 0 ? { kind: 'taken_in_part', lost } : { kind: 'taken' };
  };

  return {
    speaks: (form) => form === 'otlp',
    async *encode(picture) {
      const ended = picture.vanished.map(({ family, series }) => [family, series] as const);
      yield* encodeGroups(groupsOf(ended, origin), picture, true);
      yield* encodeGroups(groupsOf(seriesOf(picture.view.families), origin), picture, false);
    },
    headers: () => ({ 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' }),
    judge(answer, batch) {
      const { status } = answer;
      if (status >= 200 && status < 300) return judgeSuccess(answer);
      if (status === 413) return { kind: 'split' };
      return verdictOfFailure(status, retriedStatus.has(status), batch.points);
    },
    async split(batch) {
      const halves = halvesOf(await unpack(batch.body), scope);
      return Promise.all(
        halves.map(async ({ message, points }) => ({
          ...batch,
          points,
          body: await pack(message, { level: 1 }),
        })),
      );
    },
    inKnownForm: async (batch) => batch,
  };
}
