import { describe, expect, test } from 'vitest';
import {
  type Batch,
  createRequestLimits,
  type ReceiverAnswer,
  type Report,
} from '../../../src/reporters/hosted/protocol.ts';
import { createRemoteWrite } from '../../../src/reporters/hosted/remote-write/remote-write.ts';
import { manualClock } from '../../clock.ts';
import { nameOf, readRw1, readRw2, type WireSample } from '../../hosted-wire.ts';
import { type FamilySpec, viewOf } from '../../view.ts';

const timeMs = 1_767_225_600_123;
const origin = {
  instance: 'host-1',
  hostName: 'host-1.local',
  version: '1.2.3',
  prefix: '',
  hasExternalTotals: () => false,
};
const opened = (own: Partial<typeof origin> = {}) =>
  createRemoteWrite({ ...origin, ...own }, createRequestLimits(manualClock()));

const specs: FamilySpec[] = [
  {
    name: 'svc_requests',
    kind: 'counter',
    help: 'Calls made.',
    series: [
      {
        labels: { svc_service: 'frontend', operation: 'Start' },
        service: 'frontend',
        relayed: true,
        numbers: [12.5],
      },
      {
        labels: { svc_service: 'frontend', Zone: 'é"\\' },
        service: 'frontend',
        relayed: false,
        numbers: [3],
      },
    ],
  },
  {
    name: 'svc_latency',
    kind: 'histogram',
    series: [
      {
        labels: { svc_service: 'history', zone: 'a' },
        service: 'history',
        relayed: true,
        bounds: ['0.1', '1'],
        numbers: [1, 3, 4, 2.5, 4],
      },
    ],
  },
  {
    name: 'go_gc',
    kind: 'summary',
    series: [{ labels: {}, bounds: ['0.5', '0.9'], numbers: [0.01, Number.NaN, 7, 20] }],
  },
  { name: 'temp', kind: 'gauge', series: [{ numbers: [-0.5] }] },
  { name: 'odd', kind: 'untyped', series: [{ numbers: [Number.POSITIVE_INFINITY] }] },
];

/** The expected labels, written by hand from the remote write specification. */
const expected: [string, number][] = [
  [
    'svc_requests[["instance","host-1"],["job","frontend"],["operation","Start"],["svc_service","frontend"]]',
    12.5,
  ],
  [
    'svc_requests[["Zone","é\\"\\\\"],["instance","host-1"],["job","svc-agent"],["svc_service","frontend"]]',
    3,
  ],
  ...(
    [
      ['_bucket', '0.1', 1],
      ['_bucket', '1', 3],
      ['_bucket', '+Inf', 4],
    ] as const
  ).map(([ending, le, value]): [string, number] => [
    `svc_latency${ending}[["instance","host-1"],["job","history"],["le","${le}"],["svc_service","history"],["zone","a"]]`,
    value,
  ]),
  ['svc_latency_sum[["instance","host-1"],["job","history"],["svc_service","history"],["zone","a"]]', 2.5],
  ['svc_latency_count[["instance","host-1"],["job","history"],["svc_service","history"],["zone","a"]]', 4],
  ['go_gc[["instance","host-1"],["job","svc-agent"],["quantile","0.5"]]', 0.01],
  ['go_gc[["instance","host-1"],["job","svc-agent"],["quantile","0.9"]]', Number.NaN],
  ['go_gc_sum[["instance","host-1"],["job","svc-agent"]]', 7],
  ['go_gc_count[["instance","host-1"],["job","svc-agent"]]', 20],
  ['temp[["instance","host-1"],["job","svc-agent"]]', -0.5],
  ['odd[["instance","host-1"],["job","svc-agent"]]', Number.POSITIVE_INFINITY],
];

const pictureOf = (families: FamilySpec[], own: Partial<Report> = {}): Report => ({
  view: viewOf(families),
  vanished: [],
  timeMs,
  ...own,
});

async function batchesOf(protocol: ReturnType<typeof opened>, picture: Report): Promise<Batch[]> {
  const batches: Batch[] = [];
  for await (const batch of protocol.encode(picture)) batches.push(batch);
  return batches;
}

const answer = (status: number, headers: Record<string, string> = {}): ReceiverAnswer => ({
  status,
  header: (name) => headers[name],
  body: Buffer.alloc(0),
});
const written = (n: number) => ({ 'x-prometheus-remote-write-samples-written': String(n) });
const values = (samples: readonly WireSample[]) => samples.map((s) => [nameOf(s), s.value]);

describe('remote write 2.0', () => {
  test('every kind, as classic series with sorted labels, job and instance', async () => {
    const [batch, ...more] = await batchesOf(opened(), pictureOf(specs));
    expect(more).toEqual([]);
    const samples = readRw2(batch!.body);
    expect(values(samples)).toEqual(expected);
    expect(batch).toMatchObject({ format: 'rw2', points: expected.length, timeMs });
    expect(new Set(samples.map((sample) => sample.timeMs))).toEqual(new Set([timeMs]));
  });

  test('types and help', async () => {
    const [batch] = await batchesOf(opened(), pictureOf(specs));
    const types = Object.fromEntries(readRw2(batch!.body).map(({ labels, type }) => [labels.__name__, type]));
    expect(types).toEqual({
      svc_requests: 1,
      svc_latency_bucket: 3,
      svc_latency_sum: 3,
      svc_latency_count: 3,
      go_gc: 5,
      go_gc_sum: 5,
      go_gc_count: 5,
      temp: 2,
      odd: undefined,
    });
    expect(readRw2(batch!.body)[0]!.help).toBe('Calls made.');
  });

  test('start times of what counts, and of nothing else', async () => {
    const view = viewOf(specs);
    for (const { series } of view.families)
      for (const one of series) Object.assign(one, { startMs: timeMs - 5000 });
    const [batch] = await batchesOf(opened(), pictureOf([], { view }));
    const starts = Object.fromEntries(readRw2(batch!.body).map((s) => [s.labels.__name__, s.startMs]));
    const began = timeMs - 5000;
    expect(starts).toEqual({
      svc_requests: began,
      svc_latency_bucket: began,
      svc_latency_sum: began,
      svc_latency_count: began,
      go_gc: undefined,
      go_gc_sum: began,
      go_gc_count: began,
      temp: undefined,
      odd: undefined,
    });
  });

  test('a start in the future (the clock was set back) is left out', async () => {
    const view = viewOf(specs.slice(0, 1));
    for (const one of view.families[0]!.series) Object.assign(one, { startMs: timeMs + 1 });
    const [batch] = await batchesOf(opened(), pictureOf([], { view }));
    expect(readRw2(batch!.body).map(({ startMs }) => startMs)).toEqual([undefined, undefined]);
  });

  test('series that are gone end with stale markers 1 ms before the picture', async () => {
    const gone = viewOf(specs.slice(0, 2)).families;
    const vanished = gone.flatMap((family) => family.series.map((series) => ({ family, series })));
    const [batch] = await batchesOf(opened(), pictureOf(specs.slice(3, 4), { vanished }));
    const samples = readRw2(batch!.body);
    expect(values(samples)).toEqual([
      ...expected.slice(0, 7).map(([name]) => [name, 'stale']),
      [expected[11]![0], -0.5],
    ]);
    expect(samples.map((sample) => sample.timeMs - timeMs)).toEqual([-1, -1, -1, -1, -1, -1, -1, 0]);
  });

  test('a prefix stands before every name, a label of ours that is taken stays', async () => {
    const family: FamilySpec = {
      name: 'x',
      kind: 'gauge',
      series: [{ labels: { job: 'mine' }, numbers: [1] }],
    };
    const [batch] = await batchesOf(opened({ prefix: 'p_', instance: '' }), pictureOf([family]));
    expect(values(readRw2(batch!.body))).toEqual([['p_x[["job","mine"]]', 1]]);
  });

  test('pictures after each other, series coming and going', async () => {
    const protocol = opened();
    for (let round = 0; round < 5; round++) {
      const some = specs.slice(round % 3, (round % 3) + 2);
      const [batch] = await batchesOf(protocol, pictureOf(some));
      const names = new Set(some.map(({ name }) => name));
      const own = expected.filter(([text]) =>
        names.has(text.slice(0, text.indexOf('[')).replace(/_(bucket|sum|count)$/, '')),
      );
      expect(values(readRw2(batch!.body))).toEqual(own);
    }
  });

  test('a large picture is several requests that say the same together', async () => {
    const series = Array.from({ length: 12_000 }, (_, i) => ({ labels: { i: String(i) }, numbers: [i] }));
    const batches = await batchesOf(opened(), pictureOf([{ name: 'many', kind: 'gauge', series }]));
    expect(batches.length).toBeGreaterThan(1);
    for (const { points } of batches) expect(points).toBeLessThanOrEqual(5_000);
    const samples = batches.flatMap(({ body }) => readRw2(body));
    expect(samples.map(({ labels, value }) => [labels.i, value])).toEqual(
      series.map(({ labels, numbers }) => [labels.i, numbers[0]]),
    );
  });
});

describe('remote write 1.0', () => {
  const toOld = async () => {
    const protocol = opened();
    const [batch] = await batchesOf(protocol, pictureOf(specs));
    expect(protocol.verdictOf(answer(415), batch!)).toEqual({ kind: 'downgrade' });
    return { protocol, batch: batch! };
  };

  test('what waits in 2.0 says the same in 1.0, stale markers included', async () => {
    const protocol = opened();
    const gone = viewOf(specs.slice(3, 4)).families[0]!;
    const vanished = [{ family: gone, series: gone.series[0]! }];
    const [batch] = await batchesOf(protocol, pictureOf(specs.slice(0, 3), { vanished }));
    const old = await protocol.convert(batch!, true);
    expect(old).toMatchObject({ format: 'rw1', points: batch!.points, timeMs });
    const strip = ({ labels, value, timeMs: at }: WireSample) => ({ labels, value, timeMs: at });
    expect(readRw1(old.body)).toEqual(readRw2(batch!.body).map(strip));
  });

  test('once a receiver is known to be old, batches are made for it', async () => {
    const { protocol } = await toOld();
    const [batch] = await batchesOf(protocol, pictureOf(specs));
    expect(batch!.format).toBe('rw1');
    expect(values(readRw1(batch!.body))).toEqual(expected);
    expect(protocol.headers(batch!)).toEqual({
      'content-type': 'application/x-protobuf',
      'content-encoding': 'snappy',
      'x-prometheus-remote-write-version': '0.1.0',
    });
  });
});

describe('what answers mean', () => {
  const batch: Batch = { format: 'rw2', points: 10, timeMs, body: Buffer.alloc(0) };
  const old: Batch = { ...batch, format: 'rw1' };

  test.each<[string, Batch, ReceiverAnswer, object]>([
    ['200 with all written', batch, answer(200, written(10)), { kind: 'accepted' }],
    ['204 with some written', batch, answer(204, written(7)), { kind: 'partial', lost: 3 }],
    ['204 without the header', batch, answer(204), { kind: 'downgrade' }],
    ['204 to 1.0', old, answer(204), { kind: 'accepted' }],
    ['400 before 2.0 was ever taken', batch, answer(400), { kind: 'downgrade' }],
    ['400 to 1.0', old, answer(400), { kind: 'rejected', reason: 'rejected', lost: 10 }],
    ['401', batch, answer(401), { kind: 'retry', reason: 'credentials' }],
    ['404', batch, answer(404), { kind: 'retry', reason: 'rejected' }],
    ['408 to 1.0', old, answer(408), { kind: 'retry', reason: 'rejected' }],
    ['422', batch, answer(422), { kind: 'rejected', reason: 'rejected', lost: 10 }],
    [
      '409 with some written',
      batch,
      answer(409, written(4)),
      { kind: 'rejected', reason: 'rejected', lost: 6 },
    ],
    ['413', batch, answer(413), { kind: 'too_large' }],
    ['415', batch, answer(415), { kind: 'downgrade' }],
    ['415 to 1.0', old, answer(415), { kind: 'rejected', reason: 'rejected', lost: 10 }],
    ['429', batch, answer(429), { kind: 'retry', reason: 'throttled' }],
    ['500', batch, answer(500), { kind: 'retry', reason: 'server_error' }],
    ['501', batch, answer(501), { kind: 'retry', reason: 'server_error' }],
    ['503', old, answer(503), { kind: 'retry', reason: 'server_error' }],
    ['308', batch, answer(308), { kind: 'retry', reason: 'redirect' }],
  ])('%s', (_, sent, answered, verdict) => {
    expect(opened().verdictOf(answered, sent)).toEqual(verdict);
  });

  test('400 from a receiver that has taken 2.0 is the batch’s own fault', () => {
    const protocol = opened();
    protocol.verdictOf(answer(200, written(10)), batch);
    expect(protocol.verdictOf(answer(400), batch)).toEqual({
      kind: 'rejected',
      reason: 'rejected',
      lost: 10,
    });
  });
});

describe('split', () => {
  test.each(['rw2', 'rw1'] as const)('the halves of %s say what the whole said', async (form) => {
    const protocol = opened();
    const [whole] = await batchesOf(protocol, pictureOf(specs));
    const batch = form === 'rw2' ? whole! : await protocol.convert(whole!, true);
    const read = form === 'rw2' ? readRw2 : readRw1;
    const halves = await protocol.split(batch);
    expect(halves.map(({ points }) => points)).toEqual([7, 6]);
    expect(halves.map(({ format }) => format)).toEqual([form, form]);
    expect(halves.flatMap(({ body }) => read(body))).toEqual(read(batch.body));
  });

  test('one sample cannot be split', async () => {
    const protocol = opened();
    const [batch] = await batchesOf(protocol, pictureOf(specs.slice(3, 4)));
    expect(await protocol.split(batch!)).toEqual([]);
  });
});
