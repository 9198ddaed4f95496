import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { FamilyView, Kind, SeriesView } from '../../../core/model.ts';
import { createProtobufWriter, fieldsOf } from '../../../core/protobuf.ts';
import { createSeriesSlice } from '../../../core/slices.ts';
import {
  type Batch,
  type DeliveryVerdict,
  jobOf,
  type Origin,
  type Protocol,
  type ReceiverAnswer,
  type Report,
  type RequestLimits,
  startTimeOf,
  verdictOfFailure,
  verdictOfPage,
} from '../protocol.ts';
import {
  attributesOf,
  createRequestBuilder,
  halvesOf,
  headOf,
  type MetricContext,
  type PointType,
  pointTypes,
  resourceOf,
  writePoint,
} from './request.ts';

const pack = promisify<Buffer, object, Buffer>(gzip);
const unpack = promisify<Buffer, Buffer>(gunzip);

function scopeOf({ version }: Origin): Buffer {
  const writer = createProtobufWriter(64);
  writer.text(1, 'svc-agent');
  writer.text(2, version);
  return writer.take();
}

/** `partial_success.rejected_data_points` of an `ExportMetricsServiceResponse`; 0 if the body is no such message. */
function rejectedPoints({ body }: ReceiverAnswer): number {
  try {
    for (const { field, bytes } of fieldsOf(body)) {
      if (field !== 1) continue;
      for (const { field: part, value } of fieldsOf(bytes)) if (part === 1) return value;
    }
  } catch {
    // The receiver answered with success; its body does not matter.
  }
  return 0;
}

/** The series of one resource, by family in the order of the view. */
interface ResourceGroup {
  readonly resource: Buffer;
  readonly families: { family: FamilyView; series: SeriesView[] }[];
}

function groupsOf(
  families: Iterable<readonly [FamilyView, SeriesView]>,
  origin: Origin,
): Iterable<ResourceGroup> {
  const groups = new Map<string, ResourceGroup>();
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

type Sent = readonly [FamilyView, SeriesView];

function* seriesOf(families: readonly FamilyView[]): Generator<Sent> {
  for (const family of families) for (const series of family.series) yield [family, series];
}

/** Whether a summary came without its sum or its count. A `SummaryDataPoint` cannot leave out a sum or a count: it would say 0. */
const isPartial = (kind: Kind, { hasSum, hasCount }: SeriesView): boolean =>
  kind === 'summary' && !(hasSum && hasCount);

/** The numbers of a partial summary that were sent, each as a separate series: quantiles, `_sum`, `_count`. */
function partsOf(family: FamilyView, series: SeriesView): readonly Sent[] {
  const end = series.at + series.bounds.length;
  const part = (kind: Kind, suffix: string, at: number, label?: readonly [string, string]): Sent => {
    const labels = label ? [...series.labels, label] : series.labels;
    // The view finds the numbers by the series that it returned, which is the prototype. Its labels and bounds are getters, which
    // can be hidden but not assigned to.
    const own: SeriesView = Object.create(series, {
      at: { value: at },
      labels: { value: labels },
      bounds: { value: [] },
    });
    return [{ ...family, name: family.name + suffix, kind, series: [own] }, own];
  };
  return [
    ...series.bounds.map((bound, i) => part('gauge', '', series.at + i, ['quantile', bound])),
    ...(series.hasSum ? [part('gauge', '_sum', end)] : []),
    ...(series.hasCount ? [part('counter', '_count', end + 1)] : []),
  ];
}

/**
 * OTLP/HTTP with protobuf and gzip (opentelemetry.io/docs/specs/otlp): cumulative sums, gauges, explicit histograms and
 * summaries. A series that vanished gets one point with the flag NoRecordedValue, 1 ms before the report. Untyped series are sent
 * as gauges. Histogram counts are rounded to integers, and a histogram's count is that of its last bucket. A summary that came
 * without its sum or count is sent as separate series. Totals whose beginning the agent did not see have no start time.
 */
export function createOtlp(origin: Origin, limits: RequestLimits): Protocol {
  const scope = scopeOf(origin);
  const attributes = new WeakMap<SeriesView, { type: string; bytes: Buffer }>();
  const parts = new WeakMap<SeriesView, readonly Sent[]>();

  function* expressible(all: Iterable<Sent>): Generator<Sent> {
    for (const [family, series] of all) {
      if (!isPartial(family.kind, series)) {
        yield [family, series];
        continue;
      }
      const made = parts.get(series) ?? partsOf(family, series);
      parts.set(series, made);
      yield* made;
    }
  }

  const attributesFor = (type: PointType, series: SeriesView): Buffer => {
    const remembered = attributes.get(series);
    if (remembered?.type === type) return remembered.bytes;
    const bytes = attributesOf(type, series);
    attributes.set(series, { type, bytes });
    return bytes;
  };

  async function* encodeGroups(groups: Iterable<ResourceGroup>, report: Report, isEnd: boolean) {
    const request = createRequestBuilder(scope);
    const slice = createSeriesSlice();
    const timeMs = isEnd ? report.timeMs - 1 : report.timeMs;
    const finish = async (): Promise<Batch> => {
      const { points } = request;
      const body = await pack(request.take(), { level: 1 });
      return { format: 'otlp', points, timeMs: report.timeMs, body };
    };
    for (const { resource, families } of groups) {
      for (const { family, series: all } of families) {
        const { type, data, tail } = pointTypes[family.kind];
        const metric: MetricContext = {
          resource,
          head: headOf(origin.prefix + family.name, family.help),
          data,
          tail,
        };
        for (const series of all) {
          const numbers = isEnd ? undefined : report.view.numbers(series);
          const point = { series, numbers, attributes: attributesFor(type, series) };
          const startMs = isEnd ? 0 : startTimeOf(origin, family.kind, series, timeMs);
          writePoint(request.beginPoint(metric), type, point, { timeMs, startMs });
          request.endPoint();
          if (request.points >= limits.points || request.bytes >= limits.bytes) yield await finish();
          if (slice.isOver()) await slice.next();
        }
      }
    }
    if (request.points > 0) yield await finish();
  }

  const successVerdict = (answer: ReceiverAnswer): DeliveryVerdict => {
    const lost = rejectedPoints(answer);
    return lost > 0 ? { kind: 'partial', lost } : { kind: 'accepted' };
  };

  return {
    speaks: (format) => format === 'otlp',
    endsGaugesOnStop: false,
    async *encode(report) {
      const ended = report.vanished.map(({ family, series }) => [family, series] as const);
      yield* encodeGroups(groupsOf(expressible(ended), origin), report, true);
      yield* encodeGroups(groupsOf(expressible(seriesOf(report.view.families)), origin), report, false);
    },
    headers: () => ({ 'content-type': 'application/x-protobuf', 'content-encoding': 'gzip' }),
    verdictOf(answer, batch) {
      const { status } = answer;
      if (status >= 200 && status < 300) return verdictOfPage(answer) ?? successVerdict(answer);
      if (status === 413) return { kind: 'too_large' };
      return verdictOfFailure(status, batch.points);
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
    convert: async (batch) => batch,
  };
}
