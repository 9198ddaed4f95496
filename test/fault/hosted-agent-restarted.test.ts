import { describe, expect, test } from 'vitest';
import { manualClock } from '../clock.ts';
import { newFolder } from '../folder.ts';
import { openBed, receiverForEachTest } from '../hosted.ts';
import { metricsOf, pointsOf } from '../hosted-wire.ts';
import { until } from '../until.ts';
import type { FamilySpec } from '../view.ts';

const receiver = receiverForEachTest();

const minuteMs = 60_000;
const firstMs = Date.UTC(2026, 0, 1);

/**
 * What an agent shows that was started at `startedMs`: totals of a role's page, whose beginning is not known, and a total of its
 * own, which the state restored together with its beginning.
 */
const shownBy = (startedMs: number, total: number): FamilySpec[] => [
  {
    name: 'relayed',
    kind: 'counter',
    series: [{ service: 'frontend', relayed: true, numbers: [total], startMs: startedMs }],
  },
  {
    name: 'relayed_latency',
    kind: 'histogram',
    series: [
      {
        service: 'frontend',
        relayed: true,
        bounds: ['1'],
        numbers: [total, total, 5, total],
        startMs: startedMs,
      },
    ],
  },
  { name: 'own', kind: 'counter', series: [{ numbers: [total], startMs: firstMs }] },
];

/** Reports once in each of two runs of the agent. */
async function twoLives(protocol: 'otlp' | 'remotewrite'): Promise<void> {
  const directory = newFolder();
  for (const [life, total] of [1_000, 1_010].entries()) {
    const startedMs = firstMs + life * minuteMs;
    const bed = await openBed(
      receiver.url,
      { protocol },
      { directory, clock: manualClock(startedMs), hasExternalTotals: ({ relayed }) => relayed },
    );
    bed.show(shownBy(startedMs, total));
    await bed.tick();
    await until('the report is delivered', () => bed.delivered() > 0);
    await bed.stop();
  }
}

describe('a total whose beginning the agent did not see has no start time, before and after a restart', () => {
  test('OTLP', async () => {
    await twoLives('otlp');
    const starts: Record<string, Set<string | undefined>> = {};
    for (const metric of receiver.taken().flatMap((one) => metricsOf(one.resources()))) {
      for (const { startTimeUnixNano: start } of pointsOf(metric)) {
        starts[metric.name] = (starts[metric.name] ?? new Set()).add(start);
      }
    }
    expect(starts).toEqual({
      relayed: new Set([undefined]),
      relayed_latency: new Set([undefined]),
      own: new Set([`${firstMs}000000`]),
    });
  });

  test('remote write', async () => {
    await twoLives('remotewrite');
    const starts: Record<string, Set<number | undefined>> = {};
    for (const { labels, startMs } of receiver.taken().flatMap((one) => one.samples())) {
      const name = labels.__name__!;
      starts[name] = (starts[name] ?? new Set()).add(startMs);
    }
    expect(starts).toEqual({
      relayed: new Set([undefined]),
      relayed_latency_bucket: new Set([undefined]),
      relayed_latency_sum: new Set([undefined]),
      relayed_latency_count: new Set([undefined]),
      own: new Set([firstMs]),
    });
  });
});

describe('an orderly stop', () => {
  const families: FamilySpec[] = [
    { name: 'total', kind: 'counter', series: [{ numbers: [1] }] },
    { name: 'temperature', kind: 'gauge', series: [{ labels: { room: 'a' }, numbers: [20] }] },
    { name: 'unknown', kind: 'untyped', series: [{ numbers: [3] }] },
    { name: 'latency', kind: 'histogram', series: [{ bounds: ['1'], numbers: [1, 1, 0.5, 1] }] },
  ];

  test('remote write marks gauges stale, after their last sample and before their next', async () => {
    const directory = newFolder();
    const bed = await openBed(receiver.url, {}, { directory });
    bed.show(families);
    await bed.tick();
    await until('the report is delivered', () => bed.delivered() === 1);
    bed.clock.advance(500);
    const stopMs = bed.clock.nowMs();
    await bed.stop();
    const next = await openBed(receiver.url, {}, { directory, clock: manualClock(stopMs + 1000) });
    next.show(families);
    await next.tick();
    await until('the next life reports', () => next.delivered() > 0);
    const samples = receiver.taken().flatMap((one) => one.samples());
    const stale = samples.filter(({ value }) => value === 'stale');
    expect(stale.map(({ labels }) => labels.__name__).sort()).toEqual(['temperature', 'unknown']);
    for (const name of ['temperature', 'unknown']) {
      const own = samples.filter(({ labels }) => labels.__name__ === name);
      const times = own.map(({ timeMs }) => timeMs);
      expect(own.map(({ value }) => value === 'stale')).toEqual([false, false, true, false]);
      expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
    }
  });

  test('OTLP does not end its series', async () => {
    const bed = await openBed(receiver.url, { protocol: 'otlp' });
    bed.show(families);
    await bed.tick();
    await bed.stop();
    const points = receiver.taken().flatMap((one) => metricsOf(one.resources()).flatMap(pointsOf));
    expect(points.filter(({ flags = 0 }) => flags !== 0)).toEqual([]);
  });
});
