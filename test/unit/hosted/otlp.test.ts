import { describe, expect, test } from 'vitest';
import { createOtlp } from '../../../src/reporters/hosted/otlp/otlp.ts';
import {
  type Batch,
  createRequestLimits,
  type ReceiverAnswer,
  type Report,
} from '../../../src/reporters/hosted/protocol.ts';
import { manualClock } from '../../clock.ts';
import { metricsOf, partialSuccess, pointsOf, readOtlp, type WirePoint } from '../../hosted-wire.ts';
import { testRegistry } from '../../registry.ts';
import { type FamilySpec, viewOf } from '../../view.ts';

const timeMs = 1_767_225_600_123;
const nanoseconds = '1767225600123000000';
const opened = (prefix = '') =>
  createOtlp(
    { instance: 'host-1', hostName: 'h.local', version: '1.2.3', prefix, hasExternalTotals: () => false },
    createRequestLimits(manualClock()),
  );

const frontend = { service: 'frontend', relayed: true };
const specs: FamilySpec[] = [
  {
    name: 'svc_requests',
    kind: 'counter',
    help: 'Calls made.',
    series: [
      { ...frontend, labels: { operation: 'Start' }, numbers: [12.5] },
      { labels: { operation: 'é' }, service: 'frontend', numbers: [3] },
    ],
  },
  {
    name: 'svc_latency',
    kind: 'histogram',
    series: [{ ...frontend, bounds: ['0.1', '1'], numbers: [1, 3.4, 4, 2.5, 4] }],
  },
  { name: 'go_gc', kind: 'summary', series: [{ bounds: ['0.5', '0.9'], numbers: [0.01, 0.02, 7, 20] }] },
  { name: 'temp', kind: 'gauge', series: [{ numbers: [-0.5] }] },
  { name: 'odd', kind: 'untyped', series: [{ numbers: [Number.POSITIVE_INFINITY] }] },
];

async function batchesOf(protocol: ReturnType<typeof opened>, picture: Partial<Report>): Promise<Batch[]> {
  const batches: Batch[] = [];
  const whole = { view: viewOf([]), vanished: [], timeMs, ...picture };
  for await (const batch of protocol.encode(whole)) batches.push(batch);
  return batches;
}

const attributes = (list: { key: string; value: { stringValue: string } }[]) =>
  Object.fromEntries(list.map(({ key, value }) => [key, value.stringValue]));
const plain = ({ attributes: list, ...point }: WirePoint) => ({ ...point, attributes: attributes(list) });

describe('an export request', () => {
  test('one resource per role and one for the agent’s own', async () => {
    const [batch] = await batchesOf(opened(), { view: viewOf(specs) });
    const resources = readOtlp(batch!.body);
    const host = { 'service.instance.id': 'host-1', 'host.name': 'h.local' };
    expect(resources.map(({ resource }) => attributes(resource.attributes))).toEqual([
      { 'service.name': 'frontend', ...host },
      { 'service.name': 'svc-agent', ...host },
    ]);
    expect(resources.map(({ scopeMetrics }) => scopeMetrics.map(({ scope }) => scope))).toEqual([
      [{ name: 'svc-agent', version: '1.2.3' }],
      [{ name: 'svc-agent', version: '1.2.3' }],
    ]);
    expect(resources.map((one) => metricsOf([one]).map(({ name }) => name))).toEqual([
      ['svc_requests', 'svc_latency'],
      ['svc_requests', 'go_gc', 'temp', 'odd'],
    ]);
    expect(batch).toMatchObject({ format: 'otlp', points: 6, timeMs });
  });

  test('every kind with its points', async () => {
    const view = viewOf(specs);
    for (const { series } of view.families)
      for (const one of series) Object.assign(one, { startMs: timeMs - 5000 });
    const [batch] = await batchesOf(opened('p_'), { view });
    const startTimeUnixNano = '1767225595123000000';
    const times = { timeUnixNano: nanoseconds, startTimeUnixNano };
    const [sum, histogram, own, summary, gauge, untyped] = metricsOf(readOtlp(batch!.body));
    expect(sum).toMatchObject({ name: 'p_svc_requests', description: 'Calls made.' });
    expect(sum!.unit ?? '').toBe('');
    expect(sum!.sum).toMatchObject({ aggregationTemporality: 2, isMonotonic: true });
    expect(pointsOf(sum!).map(plain)).toEqual([
      { ...times, asDouble: 12.5, attributes: { operation: 'Start' } },
    ]);
    expect(pointsOf(own!).map(plain)).toEqual([{ ...times, asDouble: 3, attributes: { operation: 'é' } }]);
    expect(histogram!.histogram!.aggregationTemporality).toBe(2);
    expect(pointsOf(histogram!).map(plain)).toEqual([
      {
        ...times,
        count: '4',
        sum: 2.5,
        bucketCounts: ['1', '2', '1'],
        explicitBounds: [0.1, 1],
        attributes: {},
      },
    ]);
    expect(pointsOf(summary!).map(plain)).toMatchObject([
      {
        ...times,
        count: '20',
        sum: 7,
        quantileValues: [
          { quantile: 0.5, value: 0.01 },
          { quantile: 0.9, value: 0.02 },
        ],
      },
    ]);
    const at = { timeUnixNano: nanoseconds, attributes: {} };
    expect(pointsOf(gauge!).map(plain)).toEqual([{ ...at, asDouble: -0.5 }]);
    expect(gauge!.gauge).toBeDefined();
    expect(untyped!.gauge).toBeDefined();
    expect(pointsOf(untyped!).map(plain)).toEqual([{ ...at, asDouble: Number.POSITIVE_INFINITY }]);
  });

  test('a summary without sum or count is sent as what was sent, never with a 0', async () => {
    const parts = viewOf([
      {
        name: 'q',
        kind: 'summary',
        series: [{ bounds: ['0.5', '0.9'], hasSum: false, hasCount: false, numbers: [1, 2, 0, 0] }],
      },
      { name: 's', kind: 'summary', series: [{ bounds: [], hasCount: false, numbers: [3, 0] }] },
      { name: 'c', kind: 'summary', series: [{ bounds: ['0.5'], hasSum: false, numbers: [4, 0, 5] }] },
    ]);
    const protocol = opened();
    const sent = async (picture: Partial<Report>) => {
      const [batch] = await batchesOf(protocol, picture);
      return metricsOf(readOtlp(batch!.body)).flatMap((metric) =>
        pointsOf(metric)
          .map(plain)
          .map((point) => [metric.name, metric.sum ? 'sum' : 'gauge', point.attributes, point.asDouble]),
      );
    };
    expect(await sent({ view: parts })).toEqual([
      ['q', 'gauge', { quantile: '0.5' }, 1],
      ['q', 'gauge', { quantile: '0.9' }, 2],
      ['s_sum', 'gauge', {}, 3],
      ['c', 'gauge', { quantile: '0.5' }, 4],
      ['c_count', 'sum', {}, 5],
    ]);
    const vanished = parts.families.flatMap((family) => family.series.map((series) => ({ family, series })));
    expect((await sent({ vanished })).map(([name]) => name)).toEqual(['q', 'q', 's_sum', 'c', 'c_count']);
  });

  test('a summary without a sum arrives from the registry, too', async () => {
    const { registry, intake } = testRegistry();
    intake()
      .summary('q', { operation: 'Start' }, { quantiles: ['0.5'], hasSum: false })
      .set([4, 0, 5]);
    const [batch] = await batchesOf(opened(), { view: registry.view(({ relayed }) => relayed) });
    const points = metricsOf(readOtlp(batch!.body)).map((metric) => [
      metric.name,
      pointsOf(metric).map(plain),
    ]);
    expect(points).toMatchObject([
      ['q', [{ asDouble: 4, attributes: { operation: 'Start', quantile: '0.5' } }]],
      ['q_count', [{ asDouble: 5, attributes: { operation: 'Start' } }]],
    ]);
  });

  test('series that are gone get one point without a value', async () => {
    const gone = viewOf(specs.slice(0, 3)).families;
    const vanished = gone.flatMap((family) => family.series.map((series) => ({ family, series })));
    const [batch, ...more] = await batchesOf(opened(), { vanished });
    expect(more).toEqual([]);
    const points = metricsOf(readOtlp(batch!.body)).flatMap(pointsOf);
    expect(points.map(({ flags, timeUnixNano }) => [flags, timeUnixNano])).toEqual(
      Array.from({ length: 4 }, () => [1, '1767225600122000000']),
    );
    expect(points.map(({ asDouble, count }) => [asDouble, count])).toEqual(
      Array.from({ length: 4 }, () => [undefined, undefined]),
    );
  });

  test('a large picture is several requests that say the same together', async () => {
    const series = Array.from({ length: 12_000 }, (_, i) => ({ labels: { i: String(i) }, numbers: [i] }));
    const batches = await batchesOf(opened(), { view: viewOf([{ name: 'm', kind: 'gauge', series }]) });
    expect(batches.length).toBeGreaterThan(2);
    const points = batches.flatMap(({ body }) => metricsOf(readOtlp(body)).flatMap(pointsOf)).map(plain);
    expect(points.map((point) => [point.attributes.i, point.asDouble])).toEqual(
      series.map(({ labels, numbers }) => [labels.i, numbers[0]]),
    );
  });

  test('the halves of a request say what the whole said', async () => {
    const protocol = opened();
    const [batch] = await batchesOf(protocol, { view: viewOf(specs) });
    const halves = await protocol.split(batch!);
    expect(halves.map(({ points }) => points)).toEqual([3, 3]);
    const flat = (body: Buffer) =>
      readOtlp(body).flatMap((one) =>
        metricsOf([one]).flatMap((metric) =>
          pointsOf(metric).map((point) => ({
            ...plain(point),
            name: metric.name,
            resource: attributes(one.resource.attributes),
            monotonic: metric.sum?.isMonotonic,
            help: metric.description,
          })),
        ),
      );
    expect(halves.flatMap(({ body }) => flat(body))).toEqual(flat(batch!.body));
    const single = await batchesOf(protocol, { view: viewOf(specs.slice(3, 4)) });
    expect(await protocol.split(single[0]!)).toEqual([]);
  });
});

describe('what answers mean', () => {
  const batch: Batch = { format: 'otlp', points: 10, timeMs, body: Buffer.alloc(0) };
  const answer = (status: number, body: Buffer = Buffer.alloc(0)): ReceiverAnswer => ({
    status,
    header: () => undefined,
    body,
  });
  const refused = { kind: 'rejected', lost: 10 };

  test.each<[string, ReceiverAnswer, object]>([
    ['200', answer(200), { kind: 'accepted' }],
    ['200 with a JSON body', answer(200, Buffer.from('{"partialSuccess":{}}')), { kind: 'accepted' }],
    ['200 in part', answer(200, partialSuccess(4)), { kind: 'partial', lost: 4 }],
    ['200 with a warning', answer(200, partialSuccess(0)), { kind: 'accepted' }],
    ['400', answer(400), { ...refused, reason: 'rejected' }],
    ['401', answer(401), { kind: 'retry', reason: 'credentials' }],
    ['404', answer(404), { kind: 'retry', reason: 'rejected' }],
    ['408', answer(408), { kind: 'retry', reason: 'rejected' }],
    ['413', answer(413), { kind: 'too_large' }],
    ['415', answer(415), { ...refused, reason: 'rejected' }],
    ['429', answer(429), { kind: 'retry', reason: 'throttled' }],
    ['500', answer(500), { kind: 'retry', reason: 'server_error' }],
    ['502', answer(502), { kind: 'retry', reason: 'server_error' }],
    ['503', answer(503), { kind: 'retry', reason: 'server_error' }],
    ['504', answer(504), { kind: 'retry', reason: 'server_error' }],
    ['302', answer(302), { kind: 'retry', reason: 'redirect' }],
  ])('%s', (_, answered, verdict) => {
    expect(opened().verdictOf(answered, batch)).toEqual(verdict);
  });
});
