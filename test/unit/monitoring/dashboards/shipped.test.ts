import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentMetrics } from '../../../../src/core/agent-metrics.ts';
import { catalog } from '../../../../src/core/catalog.ts';
import { dashboards as names } from '../../../../src/monitoring/alert.ts';
import { renderDashboard, shippedDashboardOptions } from '../../../../src/monitoring/dashboards/render.ts';
import { alertsOf, pack, packs } from '../../../../src/monitoring/packs.ts';
import { type DashboardJson, fieldProperty, type StepJson } from '../../../../tools/grafana.ts';
import { lintDashboards } from '../../../../tools/lint/dashboards.ts';
import { dashboardFiles } from '../../../../tools/shipped.ts';
import { root } from '../../house/imports.ts';

const read = (name: string): DashboardJson =>
  JSON.parse(readFileSync(join(root, `dashboards/${name}.json`), 'utf8'));
const shipped = new Map(names.map((name) => [name as string, read(name)]));
const recorded = packs.flatMap(({ groups }) =>
  groups.flatMap(({ records = [] }) => records.map((of) => of.record)),
);
const panels = [...shipped].flatMap(([name, { panels: list = [] }]) =>
  list.filter(({ type }) => type !== 'row').map((panel) => ({ name, panel })),
);

describe('the shipped dashboards', () => {
  test.each(dashboardFiles())('%s is what scripts/generate.mjs writes', (path, text) => {
    expect(readFileSync(join(root, path), 'utf8')).toBe(text);
  });

  test('there is one for each name, and no other', () => {
    const present = readdirSync(join(root, 'dashboards')).filter((file) => file.endsWith('.json'));
    expect(present.sort()).toEqual(names.map((name) => `${name}.json`).sort());
    expect([...shipped].map(([name, { uid }]) => [name, uid])).toEqual(
      names.map((name) => [name, `svc-${name}`]),
    );
  });

  test('each has its preview, below 200 kB and shown in the README', () => {
    const readme = readFileSync(join(root, 'dashboards/README.md'), 'utf8');
    for (const name of names) {
      expect(statSync(join(root, `dashboards/preview/${name}.webp`)).size).toBeLessThan(200_000);
      expect(readme).toContain(`(preview/${name}.webp)`);
    }
  });

  test('the linter finds nothing', () => {
    expect(lintDashboards([...shipped.values()], recorded)).toEqual([]);
  });

  test('each panel is described, has an id of its own, and asks the chosen data source', () => {
    for (const { panels: list = [], ...rest } of shipped.values()) {
      expect(new Set(list.map(({ id }) => id)).size).toBe(list.length);
      const texts = list.filter(({ type }) => type !== 'row').flatMap((of) => [of.title, of.description]);
      expect(texts.filter((text) => !text?.trim())).toEqual([]);
      const sources = JSON.stringify([list, rest]).match(/"datasource":\{[^}]*\}?/g)!;
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
      expect(sources.filter((source) => !source.includes('"${datasource}'))).toEqual([]);
    }
  });

  test('the legend of failures by reason has the reason that occurs on top', () => {
    const ofReasons = /by \([^)]*reason\).*svc_(?:(?:probe|store|role_health)_failures|agent_dropped)_total/;
    const byReason = panels.filter(
      ({ panel: { type, targets = [] } }) =>
        type === 'timeseries' && targets.some(({ expr = '' }) => ofReasons.test(expr)),
    );
    expect(byReason.map(({ panel }) => panel.title).sort()).toEqual([
      ...['Dropped', 'Failed health checks', 'Failed probes', 'Failed runs'],
    ]);
    for (const { panel } of byReason)
      expect(panel.options).toMatchObject({
        legend: { displayMode: 'table', calcs: ['lastNotNull', 'max'], sortBy: 'Max', sortDesc: true },
      });
  });

  test('all columns of a table are in sight on a screen of 1,440 pixels', () => {
    const tables = panels.filter(({ panel }) => panel.type === 'table');
    expect(tables.length).toBeGreaterThan(10);
    const tooWide = tables.filter(({ panel: { fieldConfig, transformations, gridPos } }) => {
      const titles = Object.keys((transformations![1]!.options as { renameByName: object }).renameByName);
      const fixed = fieldConfig!.overrides.flatMap(({ properties }) =>
        properties.filter(({ id }) => id === 'custom.width').map(({ value }) => value as number),
      );
      const minWidth = fieldConfig!.defaults.custom!.minWidth!;
      const needed = fixed.reduce((sum, width) => sum + width, (titles.length - fixed.length) * minWidth);
      return needed > (gridPos!.w / 24) * 1440 - 16;
    });
    expect(tooWide.map(({ name, panel }) => `${name}: ${panel.title}`)).toEqual([]);
  });

  test('every metric of the catalogs is shown somewhere', () => {
    const text = panels.flatMap(({ panel }) => (panel.targets ?? []).map(({ expr }) => expr)).join('\n');
    const isShown = ({ name }: { name: string }) =>
      new RegExp(`\\b${name}(?:_bucket|_sum|_count)?\\b`).test(text);
    expect(
      [...catalog, ...agentMetrics].filter((metric) => !isShown(metric)).map(({ name }) => name),
    ).toEqual([]);
  });

  test('every alert’s runbook is linked from the dashboard that the alert names', () => {
    const missing = [pack('recommended'), pack('slo')].flatMap(alertsOf).filter(({ name, dashboard }) => {
      const options = { ...shippedDashboardOptions, runbookUrl: 'https://wiki.example' };
      return !JSON.stringify(renderDashboard(dashboard, options)).includes(
        `"https://wiki.example/${name}.md"`,
      );
    });
    expect(missing.map(({ name, dashboard }) => `${dashboard}: ${name}`)).toEqual([]);
  });

  test('the overview’s panels lead to the dashboards of their alerts, with time and choices', () => {
    const backlog = panels.find(({ name, panel }) => name === 'overview' && panel.title === 'Backlog')!.panel;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of the time and of all choices
    const chosen = '${__url_time_range}&${__all_variables}';
    expect(backlog.links!.map(({ title, url }) => [title, url]).at(-1)).toEqual([
      'Dashboard Matching',
      `/d/svc-matching?${chosen}`,
    ]);
    const targets = panels.flatMap(({ panel }) =>
      (panel.links ?? []).flatMap(({ url = '' }) => /^\/d\/([\w-]+)/.exec(url)?.[1] ?? []),
    );
    const uids = [...shipped.values()].map(({ uid }) => uid);
    expect(targets.filter((uid) => !uids.includes(uid))).toEqual([]);
    expect(new Set(uids).size).toBe(uids.length);
  });

  /** The limits as in the spec's table and the objectives, copied and not computed. */
  test.each([
    ['persistence', 'Failed calls by role', [10]],
    ['persistence', '99th percentile by operation', [1]],
    ['matching', 'Growth by task list', [100]],
    ['history', 'Timed out by domain', [5]],
    ['process', 'Restarts by role', [0.1]],
    ['process', 'Heap', [8_000_000_000]],
    ['process', 'Pauses', [100]],
    ['frontend', '95th percentile', [0.5]],
    ['backups', 'Time since the last success', [90_000]],
    ['dr', 'Lag', [300]],
    ['dr', 'Failed tasks', [10]],
    ['frontend', 'Failed calls over 1h and 6h', [0.006, 0.0144]],
    ['frontend', 'Slow calls over 1d and 3d', [0.05, 0.15]],
    ['overview', 'Certificates', [1_209_600]],
    ['overview', 'Agents drop data', [0.000001]],
  ])('%s: %s begins to colour at %j', (name, title, values) => {
    const { panel } = panels.find((of) => of.name === name && of.panel.title === title)!;
    const { steps } = fieldProperty(panel, panel.targets![0]!, 'thresholds') as { steps: StepJson[] };
    expect(steps.slice(1).map(({ value }) => value)).toEqual(values);
    expect(steps[0]!.value).toBeNull();
  });

  test('below the limit is good, but for what is to last', () => {
    const colours = (name: string, title: string) =>
      panels
        .find((of) => of.name === name && of.panel.title === title)!
        .panel.fieldConfig!.defaults.thresholds!.steps.map(({ color }) => color);
    expect(colours('process', 'Heap')).toEqual(['green', 'orange']);
    expect(colours('persistence', 'Failed calls by role')).toEqual(['green', 'red']);
    expect(colours('overview', 'Certificates')).toEqual(['orange', 'green']);
  });
});
