import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RolePipeline } from '../../../src/agent/role-pipeline.ts';
import type { View } from '../../../src/core/model.ts';
import type { Registry } from '../../../src/core/registry/registry.ts';
import { createOtlp } from '../../../src/reporters/hosted/otlp/otlp.ts';
import { createRequestLimits } from '../../../src/reporters/hosted/protocol.ts';
import { createRemoteWrite } from '../../../src/reporters/hosted/remote-write/remote-write.ts';
import { manualClock } from '../../clock.ts';
import { metricsOf, nameOf, pointsOf, readOtlp, readRw2 } from '../../hosted-wire.ts';
import { readOpenMetrics } from '../../openmetrics.ts';
import { configOf, openRoles } from '../../role-pipeline.ts';
import { sendDatagrams } from '../../statsd.ts';
import { until } from '../../until.ts';
import { pageOf } from '../../view.ts';
import { hasPromtool } from '../rules/promtool.ts';

const clock = manualClock();
const origin = {
  instance: 'host-1',
  hostName: 'h.local',
  version: '1.2.3',
  prefix: '',
  hasExternalTotals: () => false,
};
let registry: Registry;
let relays: RolePipeline;
beforeEach(() => {
  ({ registry, roles: relays } = openRoles(clock));
});
afterEach(() => relays.stop());

const pull = (options: object) => ({ pullmetrics: { listenAddress: '127.0.0.1:0', ...options } });

const configure = async (config: object) => relays.configure(await configOf(JSON.stringify(config)));

/** Sends to a service's listener and waits until all the lines were read. */
async function send(service: string, lines: readonly string[]): Promise<void> {
  const { statsd } = [...relays.all()].find((relay) => relay.service === service)!;
  const wanted = statsd!.status().lines + lines.length;
  const datagrams = Array.from({ length: Math.ceil(lines.length / 20) }, (_, i) =>
    lines.slice(i * 20, i * 20 + 20).join('\n'),
  );
  await sendDatagrams(statsd!.status().addresses.listen!, datagrams);
  await until('all lines were read', () => statsd!.status().lines === wanted);
}

async function shown<T>(use: (view: View) => Promise<T> | T): Promise<T> {
  const view = registry.view(({ relayed }) => relayed);
  try {
    return await use(view);
  } finally {
    view.release();
  }
}

const page = (format: 'text' | 'openmetrics') => shown((view) => pageOf(view, format));

const kinds = () =>
  shown(({ families }) => Object.fromEntries(families.map(({ name, kind }) => [name, kind])));

/** The first quantile of the only series. */
function firstQuantile(): number {
  const view = registry.view(({ relayed }) => relayed);
  const series = view.families[0]!.series[0]!;
  const value = view.numbers(series)[series.at]!;
  view.release();
  return value;
}

/** The values 1 to 1000 ms, each once. */
const latencies = Array.from(
  { length: 1000 },
  (_, i) => `svc_frontend_client_latency:${i + 1}|ms|#operation:Poll`,
);
const byRank = { '0.5': 0.5, '0.75': 0.75, '0.95': 0.95, '0.99': 0.99, '0.999': 0.999 };

function expectQuantiles(got: Readonly<Record<string, number>>): void {
  expect(Object.keys(got)).toEqual(Object.keys(byRank));
  for (const [quantile, wanted] of Object.entries(byRank)) {
    expect(Math.abs(got[quantile]! - wanted), quantile).toBeLessThanOrEqual(wanted * 0.0100001);
  }
}

const withSummaries = {
  services: { frontend: { statsd: '127.0.0.1:0', metrics: pull({ timerType: 'summary' }) } },
};
const labels = 'operation="Poll",svc_service="frontend"';

describe('timers of a service whose block says summary', () => {
  beforeEach(async () => {
    await configure(withSummaries);
    await send('frontend', latencies);
  });

  test('leave on the page', async () => {
    const lines = (await page('text')).split('\n');
    const value = (start: string) =>
      Number(lines.find((line) => line.startsWith(start))?.slice(start.length));
    expect(lines.filter((line) => line.startsWith('# TYPE'))).toEqual([
      '# TYPE svc_frontend_client_latency summary',
    ]);
    const got = Object.keys(byRank).map((quantile): [string, number] => [
      quantile,
      value(`svc_frontend_client_latency{${labels},quantile="${quantile}"} `),
    ]);
    expectQuantiles(Object.fromEntries(got));
    expect(value(`svc_frontend_client_latency_sum{${labels}} `)).toBeCloseTo(500.5, 6);
    expect(value(`svc_frontend_client_latency_count{${labels}} `)).toBe(1000);
    expect(readOpenMetrics(await page('openmetrics')).map(({ type }) => type)).toEqual(['summary']);
  });

  test.skipIf(!hasPromtool)('promtool reads the page, with quantiles and with none', async () => {
    const check = async () => {
      const input = await page('text');
      const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
      // Status 3 is what its linter rejects, such as a name without a unit.
      expect([0, 3], stderr).toContain(status);
      return input;
    };
    await check();
    clock.advance(20 * 60_000);
    await until('the window is empty', () => Number.isNaN(firstQuantile()));
    expect(await check()).toContain(`svc_frontend_client_latency_count{${labels}} 1000`);
  });

  test('leave by OTLP', async () => {
    await shown(async (view) => {
      const protocol = createOtlp(origin, createRequestLimits(manualClock()));
      const points = [];
      for await (const { body } of protocol.encode({ view, vanished: [], timeMs: clock.nowMs() })) {
        points.push(...metricsOf(readOtlp(body)).flatMap(pointsOf));
      }
      expect(points).toHaveLength(1);
      const { count, sum, quantileValues } = points[0] as unknown as {
        count: string;
        sum: number;
        quantileValues: { quantile: number; value: number }[];
      };
      expect(count).toBe('1000');
      expect(sum).toBeCloseTo(500.5, 6);
      expectQuantiles(Object.fromEntries(quantileValues.map((one) => [String(one.quantile), one.value])));
    });
  });

  test('leave by remote write', async () => {
    await shown(async (view) => {
      const protocol = createRemoteWrite(origin, createRequestLimits(manualClock()));
      const samples = new Map<string, unknown>();
      for await (const { body } of protocol.encode({ view, vanished: [], timeMs: clock.nowMs() })) {
        for (const sample of readRw2(body)) samples.set(nameOf(sample), sample.value);
      }
      const name = (ending: string, quantile?: string) => {
        const pairs = [
          ['instance', 'host-1'],
          ['job', 'frontend'],
          ['operation', 'Poll'],
          ...(quantile === undefined ? [] : [['quantile', quantile]]),
          ['svc_service', 'frontend'],
        ];
        return `svc_frontend_client_latency${ending}${JSON.stringify(pairs)}`;
      };
      const quantiles = Object.keys(byRank).map((quantile): [string, number] => [
        quantile,
        samples.get(name('', quantile)) as number,
      ]);
      expectQuantiles(Object.fromEntries(quantiles));
      expect(samples.get(name('_sum'))).toBeCloseTo(500.5, 6);
      expect(samples.get(name('_count'))).toBe(1000);
    });
  });
});

test('a service without a block of its own goes by the top-level one, and one with by its own', async () => {
  await configure({
    metrics: pull({ timerType: 'summary' }),
    services: {
      frontend: { statsd: '127.0.0.1:0' },
      history: { statsd: '127.0.0.1:0', metrics: pull({}) },
    },
  });
  await send('frontend', ['a:1|ms', 'b:1|c']);
  await send('history', ['c:1|ms']);
  expect(await kinds()).toEqual({ a: 'summary', b: 'counter', c: 'histogram' });
});

test('a reload that changes the type of timers', async () => {
  const statsd = '127.0.0.1:0';
  await configure({ services: { frontend: { statsd, metrics: pull({}) } } });
  await send('frontend', ['a:1|ms']);
  expect(await kinds()).toEqual({ a: 'histogram' });
  await configure({ services: { frontend: { statsd, metrics: pull({ timerType: 'summary' }) } } });
  expect(await kinds()).toEqual({});
  await send('frontend', ['a:1|ms']);
  expect(await kinds()).toEqual({ a: 'summary' });
  await relays.stop();
  expect(await kinds()).toEqual({});
});
