import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dashboards as names } from '../../src/monitoring/alert.ts';
import type { DashboardJson, PanelJson, TargetJson } from '../../tools/grafana.ts';
import { newFolder } from '../folder.ts';
import { isInstalled } from '../installed.ts';
import { ask, type View, valuesOf } from '../simulated/queries.ts';
import { startSimulated } from '../simulated/server.ts';
import { bySize } from '../size.ts';
import { root } from '../unit/house/imports.ts';
import { hasPrometheus, type Prometheus } from './prometheus.ts';

const hasPromtool = isInstalled('promtool');
const crowdSize = 300;
const mostSeries = 200;

const allViews: readonly View[] = ['dc1', '.*'].flatMap((cluster) =>
  [
    { rateInterval: '1m', range: '15m', interval: '20s', rangeSeconds: 900, stepSeconds: 20 },
    { rateInterval: '5m', range: '15m', interval: '20s', rangeSeconds: 900, stepSeconds: 20 },
    { rateInterval: '1m', range: '55m', interval: '60s', rangeSeconds: 3300, stepSeconds: 60 },
    { rateInterval: '5m', range: '55m', interval: '60s', rangeSeconds: 3300, stepSeconds: 60 },
  ].map((of) => ({ ...of, values: { cluster } })),
);

/** The views: each choice of cluster, range and interval of rates once, or all combinations. */
const views = bySize({ short: [allViews[0]!, allViews[7]!], long: allViews, nightly: allViews });

interface Asked {
  panel: PanelJson;
  target: TargetJson;
  view: View;
}

const read = (name: string): DashboardJson =>
  JSON.parse(readFileSync(join(root, `dashboards/${name}.json`), 'utf8'));

describe.skipIf(!hasPrometheus || !hasPromtool)('dashboards on a real Prometheus with two clusters', () => {
  const place = newFolder(afterAll);
  let server: Prometheus;
  beforeAll(async () => {
    server = await startSimulated(place, crowdSize);
  });
  afterAll(() => server?.end());

  /** What is wrong with the answer to one query, if anything. */
  async function faultOf({ panel, target, view }: Asked): Promise<string | undefined> {
    const where = `${panel.title} ${target.refId} ${JSON.stringify(view)}`;
    try {
      const series = await ask(server.address, target, view);
      if (series.length === 0) return `${where}: nothing`;
      if (series.length > mostSeries) return `${where}: ${series.length} series`;
      if (series.some(({ values }) => values.some(([, value]) => !Number.isFinite(value))))
        return `${where}: not finite`;
      const chosen = view.values.cluster!;
      const foreign = series.find(
        ({ metric }) => chosen !== '.*' && metric.cluster && metric.cluster !== chosen,
      );
      return foreign && `${where}: shows ${JSON.stringify(foreign.metric)}`;
    } catch (thrown) {
      return `${where}: ${thrown}`;
    }
  }

  /** Runs a few queries at a time over open connections. */
  async function faultsOf(all: readonly Asked[]): Promise<string[]> {
    const faults: string[] = [];
    const left = [...all];
    const work = async () => {
      for (let next = left.pop(); next; next = left.pop()) {
        const fault = await faultOf(next);
        if (fault) faults.push(fault);
      }
    };
    await Promise.all(Array.from({ length: 8 }, work));
    return faults.sort();
  }

  test.each([...names])(
    '%s: every panel has its data, finite, bounded and of the chosen cluster',
    async (name) => {
      const panels = (read(name).panels ?? []).filter(({ type }) => type !== 'row');
      const all = panels.flatMap((panel) =>
        panel.targets!.flatMap((target) => views.map((view) => ({ panel, target, view }))),
      );
      expect(all.length).toBeGreaterThan(5 * views.length);
      expect(await faultsOf(all)).toEqual([]);
    },
  );

  test.each([...names])('%s: every variable has values, of the chosen cluster', async (name) => {
    for (const { name: variable, query } of read(name).templating!.list.filter(
      ({ type }) => type === 'query',
    )) {
      for (const view of views) {
        const values = await valuesOf(server.address, query!, view);
        if (variable === 'environment') expect(values).toEqual([]);
        else expect(values.length, `${variable} ${JSON.stringify(view)}`).toBeGreaterThan(0);
        if (variable === 'cluster') expect(values).toEqual(['dc1', 'dc2']);
        if (variable === 'instance' && view.values.cluster === 'dc1')
          expect(values.filter((value) => !value.startsWith('dc1-'))).toEqual([]);
      }
    }
  });

  test('annotations are found: five alerts and the failover of each domain', async () => {
    const { list } = read('overview').annotations!;
    const found = await Promise.all(
      list.map(({ expr }) => ask(server.address, { expr: expr!, instant: true }, views.at(-1)!)),
    );
    expect(found.map((series) => series.length)).toEqual([5, 4]);
  });

  /** What is wrong in the last minute of the simulated hour, as test/simulated defines it. */
  test.each([
    ['overview', 'Critical alerts', { dc1: 3, dc2: 0 }],
    ['overview', 'Warnings', { dc1: 2, dc2: 0 }],
    ['overview', 'Stores down', { dc1: 0, dc2: 0 }],
    ['overview', 'Not recoverable', { dc1: 2, dc2: 0 }],
    ['overview', 'Oldest backup', { dc1: (60 + 1700) * 60, dc2: (60 + 200) * 60 }],
    ['overview', 'Replication lag', { dc1: 4, dc2: 4 }],
    ['dr', 'Clusters', { dc1: 2, dc2: 2 }],
    ['logs', 'Fatal entries', { dc1: 2, dc2: 0 }],
    ['persistence', 'Share of failed calls by role', { dc1: 0.004, dc2: 0.004 }],
  ])('%s: %s says what is so: %j', async (name, title, wanted) => {
    const { targets } = read(name).panels!.find((panel) => panel.title === title)!;
    const now = await ask(
      server.address,
      { ...targets![0]!, instant: true },
      { ...views.at(-1)!, values: {} },
    );
    for (const [cluster, value] of Object.entries(wanted)) {
      const of = now.filter(({ metric }) => metric.cluster === cluster);
      expect(of.length).toBeGreaterThan(0);
      for (const { values } of of) expect(values[0]![1]).toBeCloseTo(value, 3);
    }
  });

  test('a distribution, which has no cluster, is of the chosen cluster only', async () => {
    const panel = read('persistence').panels!.find(({ type }) => type === 'heatmap')!;
    const total = async (cluster: string) => {
      const answered = await ask(server.address, panel.targets![0]!, { ...views[0]!, values: { cluster } });
      return answered.find(({ metric }) => metric.le === '+Inf')!.values.at(-1)![1];
    };
    const [one, other, both] = [await total('dc1'), await total('dc2'), await total('.*')];
    expect(one + other).toBeCloseTo(both, 6);
    expect(Math.min(one, other)).toBeGreaterThan(0);
  });

  test('what two agents report alike is shown once', async () => {
    const panel = read('dr').panels!.find(({ title }) => title === 'Lag')!;
    const raw = await ask(server.address, { expr: 'svc_replication_lag_seconds', instant: true }, views[0]!);
    const shown = await ask(
      server.address,
      { ...panel.targets![0]!, instant: true },
      { ...views[0]!, values: {} },
    );
    expect([raw.length, shown.length]).toEqual([3, 2]);
  });
});
