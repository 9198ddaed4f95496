import { typeOf } from '../../src/monitoring/dashboards/queries.ts';
import { type DashboardJson, type PanelJson, parseable, type VariableJson } from '../grafana.ts';
import { parse, selectorsOf } from '../promql.ts';
import {
  type DashboardFinding,
  type DashboardLint,
  isLoki,
  isOpenTo,
  targetLints,
  unless,
} from './queries.ts';

const variables = ({ templating }: DashboardJson): readonly VariableJson[] => templating?.list ?? [];

const selectorsIn = ({ panels = [] }: DashboardJson) =>
  panels
    .flatMap(({ targets = [] }) => targets)
    .filter((target) => !isLoki(target))
    .flatMap(({ expr = '' }) => selectorsOf(parse(parseable(expr))));

/** A dashboard that shows series with this label offers a choice of its values, including all at once. */
const chosen = (lint: string, variable: string, label: string): DashboardLint => ({
  name: lint,
  dashboard(of) {
    if (!selectorsIn(of).some((selector) => isOpenTo(selector, label))) return [];
    const found = variables(of).find(({ name }) => name === variable);
    if (!found) return [`its series have ${label}, and it has no variable ${variable}`];
    return [
      ...unless(
        found.multi === true && found.includeAll === true,
        `${variable} does not take several and all`,
      ),
      ...unless(found.allValue === '.*', `All of ${variable} leaves out series without ${label}`),
    ];
  },
});

const templateLabelPromql: DashboardLint = {
  name: 'template-label-promql',
  dashboard: (of) =>
    variables(of)
      .filter(({ type }) => type === 'query')
      .flatMap(({ name, query = '' }) => {
        const [, selector, label] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? [];
        if (!selector) return [`${name}: ${query} is no label_values(selector, label)`];
        const parsed = parse(parseable(selector));
        const labels = parsed.type === 'selector' ? typeOf(parsed.name)?.labels : undefined;
        return unless(labels?.includes(label!) === true, `${name}: ${selector} has no label ${label}`);
      }),
};

const grid: DashboardLint = {
  name: 'grid',
  dashboard({ panels = [] }) {
    const placed = panels.flatMap(({ gridPos, title }) => (gridPos ? [{ ...gridPos, title }] : []));
    const wide = placed.filter(({ x, w }) => x + w > 24).map(({ title }) => `${title} leaves the grid`);
    const covered = placed.filter((a, index) =>
      placed
        .slice(index + 1)
        .some((b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h),
    );
    return [...wide, ...covered.map(({ title }) => `${title} lies over another panel`)];
  },
};

const lints: readonly DashboardLint[] = [
  chosen('template-job', 'role', 'svc_service'),
  chosen('template-instance', 'instance', 'instance'),
  ...[templateLabelPromql, grid, ...targetLints],
];

/**
 * Series that dashboards may query in addition to the series of the catalogs: series of the server, and of the agent's runtime.
 */
export const uncataloged: readonly string[] = [
  'ALERTS_FOR_STATE',
  ...['process_cpu_seconds_total', 'process_resident_memory_bytes'].map((name) => `svc_agent_${name}`),
  ...['heap_size_used_bytes', 'eventloop_lag_p99_seconds'].map((name) => `svc_agent_nodejs_${name}`),
];

export const dashboardLintNames: readonly string[] = lints.map(({ name }) => name);

/**
 * Checks dashboards in Grafana's classic schema against the types of the catalogs. `recorded` are names of series that rules
 * record. Throws if a query is not PromQL.
 */
export function lintDashboards(
  dashboards: readonly DashboardJson[],
  recorded: readonly string[],
): DashboardFinding[] {
  const names = new Set([...recorded, ...uncataloged]);
  return dashboards.flatMap((dashboard) => [
    ...lints.flatMap(({ name, dashboard: check }) => found(name, '', check?.(dashboard) ?? [])),
    ...(dashboard.panels ?? []).flatMap((panel) => ofPanel(dashboard, panel, names)),
  ]);
}

function ofPanel(
  dashboard: DashboardJson,
  panel: PanelJson,
  recorded: ReadonlySet<string>,
): DashboardFinding[] {
  return (panel.targets ?? []).flatMap((target) => {
    const subject = isLoki(target)
      ? undefined
      : { dashboard, panel, target, expr: parse(parseable(target.expr ?? '')), recorded };
    return lints.flatMap(({ name, text, target: check }) =>
      found(name, panel.title ?? '', [...(text?.(target) ?? []), ...((subject && check?.(subject)) ?? [])]),
    );
  });
}

const found = (lint: string, place: string, faults: readonly string[]): DashboardFinding[] =>
  faults.map((fault) => ({ lint, place, fault }));
