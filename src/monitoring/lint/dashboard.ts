import { errorText } from '../../core/errors.ts';
import { parseable } from '../dashboards/fill.ts';
import type { DashboardJson, PanelJson, TargetJson } from '../dashboards/json.ts';
import { parse } from '../promql/parse.ts';
import type { DashboardFinding, DashboardLint } from './dashboard-rule.ts';
import { dashboardShapeLints } from './dashboard-shape.ts';
import { targetLints } from './dashboard-targets.ts';

const lints: readonly DashboardLint[] = [...dashboardShapeLints, ...targetLints];

/** Series that dashboards may ask for beside those of the catalogs: of the server, and of the agent's runtime. */
export const uncataloged: readonly string[] = [
  'ALERTS_FOR_STATE',
  ...['process_cpu_seconds_total', 'process_resident_memory_bytes'].map((name) => `svc_agent_${name}`),
  ...['heap_size_used_bytes', 'eventloop_lag_p99_seconds'].map((name) => `svc_agent_nodejs_${name}`),
];

/** Every lint by its name: those of Grafana's own linter, and those that need the catalogs. */
export const dashboardLintNames: readonly string[] = [
  'target-promql',
  'unique-uid',
  ...lints.map(({ name }) => name),
];

/**
 * Judges dashboards in Grafana's classic schema by the types of the catalogs. `recorded` are names of series
 * that rules record.
 */
export function lintDashboards(
  dashboards: readonly DashboardJson[],
  recorded: readonly string[],
): DashboardFinding[] {
  const names = new Set([...recorded, ...uncataloged]);
  const uids = dashboards.map(({ uid }) => uid);
  return dashboards.flatMap((dashboard, index) => [
    ...found('unique-uid', '', uids.indexOf(dashboard.uid) === index ? [] : [`${dashboard.uid} is taken`]),
    ...lints.flatMap(({ name, dashboard: judge }) => found(name, '', judge?.(dashboard) ?? [])),
    ...(dashboard.panels ?? []).flatMap((panel) => ofPanel(dashboard, panel, names)),
  ]);
}

function ofPanel(
  dashboard: DashboardJson,
  panel: PanelJson,
  recorded: ReadonlySet<string>,
): DashboardFinding[] {
  const place = panel.title ?? '';
  return [
    ...lints.flatMap(({ name, panel: judge }) => found(name, place, judge?.(panel) ?? [])),
    ...(panel.targets ?? []).flatMap((target) => [
      ...lints.flatMap(({ name, text }) => found(name, place, text?.(target) ?? [])),
      ...(target.datasource?.type === 'loki' ? [] : ofPromql(dashboard, panel, target, recorded)),
    ]),
  ];
}

function ofPromql(
  dashboard: DashboardJson,
  panel: PanelJson,
  target: TargetJson,
  recorded: ReadonlySet<string>,
): DashboardFinding[] {
  const place = panel.title ?? '';
  try {
    const expr = parse(parseable(target.expr ?? ''));
    const subject = { dashboard, panel, target, expr, recorded };
    return lints.flatMap(({ name, target: judge }) => found(name, place, judge?.(subject) ?? []));
  } catch (thrown) {
    return found('target-promql', place, [errorText(thrown)]);
  }
}

const found = (lint: string, place: string, faults: readonly string[]): DashboardFinding[] =>
  faults.map((fault) => ({ lint, place, fault }));
