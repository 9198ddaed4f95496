import { expect, test } from 'vitest';
import { counter, openBed, receiverForEachTest } from '../hosted.ts';
import { metricsOf, pointsOf } from '../hosted-wire.ts';
import { until } from '../until.ts';
import type { FamilySpec } from '../view.ts';

const receiver = receiverForEachTest();

const histogram = (bounds: readonly string[]): FamilySpec => ({
  name: 'h',
  kind: 'histogram',
  series: [{ bounds, numbers: [...bounds.map((_, i) => i), 9, 1, 9] }],
});

/** The values of each view, by `name le`. */
async function said(pictures: readonly (readonly FamilySpec[])[]): Promise<Record<string, unknown>[]> {
  const bed = await openBed(receiver.url);
  for (const [i, picture] of pictures.entries()) {
    bed.show(picture);
    await bed.tick();
    await until('it goes through', () => bed.delivered() === i + 1);
  }
  const all = receiver.taken().map((one) => {
    const lines: Record<string, unknown[]> = {};
    for (const { labels, value, timeMs } of one.samples()) {
      const key = `${labels.__name__} ${labels.le ?? labels.pod ?? ''}`.trim();
      lines[key] = [...(lines[key] ?? []), value === 'stale' ? `stale ${timeMs % 1000}` : value];
    }
    return lines;
  });
  await bed.stop();
  return all;
}

test('a series that is gone is marked once, and comes back as it was', async () => {
  const [a, b] = [counter(1, { pod: 'a' }), counter(2, { pod: 'b' })];
  const both = { ...a, series: [...a.series, ...b.series] };
  expect(await said([[both], [b], [b], [both]])).toEqual([
    { 'svc_requests a': [1], 'svc_requests b': [2] },
    { 'svc_requests a': ['stale 999'], 'svc_requests b': [2] },
    { 'svc_requests b': [2] },
    { 'svc_requests a': [1], 'svc_requests b': [2] },
  ]);
});

test('other buckets, another kind: what stays is marked before its new value', async () => {
  const gauge: FamilySpec = { name: 'h_sum', kind: 'gauge', series: [{ numbers: [7] }] };
  expect(await said([[histogram(['1', '5'])], [histogram(['1', '9'])], [gauge]])).toEqual([
    {
      'h_bucket 1': [0],
      'h_bucket 5': [1],
      'h_bucket +Inf': [9],
      h_sum: [1],
      h_count: [9],
    },
    {
      'h_bucket 1': ['stale 999', 0],
      'h_bucket 5': ['stale 999'],
      'h_bucket 9': [1],
      'h_bucket +Inf': ['stale 999', 9],
      h_sum: ['stale 999', 1],
      h_count: ['stale 999', 9],
    },
    {
      'h_bucket 1': ['stale 999'],
      'h_bucket 9': ['stale 999'],
      'h_bucket +Inf': ['stale 999'],
      h_sum: ['stale 999', 7],
      h_count: ['stale 999'],
    },
  ]);
});

test('a summary that loses its sum: the sum is marked, too', async () => {
  const summary = (hasSum: boolean): FamilySpec => ({
    name: 's',
    kind: 'summary',
    series: [{ bounds: ['0.5'], hasSum, numbers: [1, 2, 3] }],
  });
  expect(await said([[summary(true)], [summary(false)]])).toEqual([
    { s: [1], s_sum: [2], s_count: [3] },
    { s: ['stale 999', 1], s_sum: ['stale 999'], s_count: ['stale 999', 3] },
  ]);
});

test('OTLP: one point without a value', async () => {
  const bed = await openBed(receiver.url, { protocol: 'otlp' });
  await bed.tick();
  await until('the series is there', () => bed.delivered() === 1);
  bed.show([]);
  await bed.tick();
  await until('its end is told', () => bed.delivered() === 2);
  await bed.tick();
  const flags = receiver
    .taken()
    .map((one) => metricsOf(one.resources()).flatMap((metric) => pointsOf(metric).map((p) => p.flags ?? 0)));
  expect(flags).toEqual([[0], [1]]);
});
