import { errorText } from '../../src/core/errors.ts';
import { units } from '../../src/monitoring/dashboards/dashboard.ts';
import { typeOf } from '../../src/monitoring/dashboards/queries.ts';
import {
  type DashboardJson,
  type PanelJson,
  parseable,
  type TargetJson,
  type VariableJson,
} from '../grafana.ts';
import { parse, type Selector, selectorsOf } from '../promql.ts';
import { type DashboardFinding, type DashboardLint, isOpenTo, targetLints, unless } from './queries.ts';

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
const ownSource = '${datasource}';
const variables = ({ templating }: DashboardJson): readonly VariableJson[] => templating?.list ?? [];
const queries = (of: DashboardJson) => variables(of).filter(({ type }) => type === 'query');
const isRow = ({ type }: PanelJson): boolean => type === 'row';
const hasQueries = (panel: PanelJson): boolean => !isRow(panel) && panel.type !== 'text';

const templateDatasource: DashboardLint = {
  name: 'template-datasource',
  dashboard(of) {
    const sources = variables(of).filter(({ type }) => type === 'datasource');
    const [only] = sources;
    if (sources.length !== 1) return [`has ${sources.length} variables of type datasource`];
    return [
      ...unless(only!.name === 'datasource', `the data source's variable is called ${only!.name}`),
      ...unless(only!.label === 'Data source', `the data source's variable is labelled ${only!.label}`),
      ...unless(only!.query === 'prometheus', `the data source is of type ${only!.query}`),
    ];
  },
};

/** All that panels select; what cannot be parsed selects nothing. */
function selectorsIn({ panels = [] }: DashboardJson): readonly Selector[] {
  const exprs = panels.flatMap(({ targets = [] }) => targets.map(({ expr = '' }) => expr));
  return exprs.flatMap((expr) => {
    try {
      return selectorsOf(parse(parseable(expr)));
    } catch {
      return [];
    }
  });
}

/** A dashboard that shows series with this label lets one choose it, all at once included. */
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
    queries(of).flatMap(({ name, query = '' }) => {
      const [, selector, label] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? [];
      if (!selector) return [`${name}: ${query} is no label_values(selector, label)`];
      try {
        const parsed = parse(parseable(selector));
        if (parsed.type !== 'selector') return [`${name}: ${selector} is no selector`];
        const labels = typeOf(parsed.name)?.labels;
        return unless(labels?.includes(label!) === true, `${name}: ${parsed.name} has no label ${label}`);
      } catch {
        return [`${name}: ${selector} is no selector`];
      }
    }),
};

const reload: DashboardLint = {
  name: 'template-on-time-change-reload',
  dashboard: (of) =>
    queries(of).flatMap(({ name, refresh }) =>
      unless(refresh === 2, `${name} is not asked again when the time range changes`),
    ),
};

const uneditable: DashboardLint = {
  name: 'uneditable-dashboard',
  dashboard: ({ editable }) => unless(editable === false, 'can be edited where it is generated'),
};

const identity: DashboardLint = {
  name: 'identity',
  dashboard: ({ uid, tags = [], panels = [] }) => [
    ...unless(/^svc-[a-z-]{2,36}$/.test(uid ?? ''), `its uid is ${uid}`),
    ...unless(tags.length > 0, 'has no tag'),
    ...unless(new Set(panels.map(({ id }) => id)).size === panels.length, 'two panels have the same id'),
  ],
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

/** Everything asks the source that is chosen, annotations and variables too. */
const annotationSource: DashboardLint = {
  name: 'annotation-datasource',
  dashboard: (of) =>
    [...queries(of), ...(of.annotations?.list ?? []).filter(({ expr }) => expr !== undefined)]
      .filter(({ datasource }) => datasource?.uid !== ownSource)
      .map(({ name }) => `${name} asks another data source than the chosen one`),
};

const panelDatasource: DashboardLint = {
  name: 'panel-datasource',
  panel: (panel) =>
    hasQueries(panel)
      ? [panel, ...(panel.targets ?? [])].flatMap((of) =>
          unless(of.datasource?.uid === ownSource, `asks ${of.datasource?.uid ?? 'the default data source'}`),
        )
      : [],
};

const titleDescription: DashboardLint = {
  name: 'panel-title-description',
  panel: (panel) =>
    isRow(panel)
      ? unless(Boolean(panel.title), 'a row without a title')
      : [
          ...unless(Boolean(panel.title?.trim()), 'has no title'),
          ...unless(Boolean(panel.description?.trim()), 'has no description'),
        ],
};

const knownUnits = new Set<string>(Object.values(units));
const panelUnits: DashboardLint = {
  name: 'panel-units',
  panel: (panel) =>
    hasQueries(panel)
      ? unless(
          knownUnits.has(panel.fieldConfig?.defaults.unit ?? ''),
          `its unit is ${panel.fieldConfig?.defaults.unit}`,
        )
      : [],
};

const noTargets: DashboardLint = {
  name: 'panel-no-targets',
  panel: (panel) =>
    hasQueries(panel)
      ? [
          ...unless((panel.targets ?? []).length > 0, 'asks nothing'),
          ...unless(
            new Set(panel.targets?.map(({ refId }) => refId)).size === (panel.targets ?? []).length,
            'two queries have the same refId',
          ),
        ]
      : [],
};

const dashboardShapeLints: readonly DashboardLint[] = [
  templateDatasource,
  chosen('template-job', 'role', 'svc_service'),
  chosen('template-instance', 'instance', 'instance'),
  ...[templateLabelPromql, reload, uneditable, identity, grid, annotationSource],
  ...[panelDatasource, titleDescription, panelUnits, noTargets],
];

const lints: readonly DashboardLint[] = [...dashboardShapeLints, ...targetLints];

/** Series that dashboards may ask for beside those of the catalogs: of the server, and of the agent's runtime. */
export const uncataloged: readonly string[] = [
  'ALERTS_FOR_STATE',
  ...['process_cpu_seconds_total', 'process_resident_memory_bytes'].map((name) => `svc_agent_${name}`),
  ...['heap_size_used_bytes', 'eventloop_lag_p99_seconds'].map((name) => `svc_agent_nodejs_${name}`),
];

/** Every lint by its name: those of Grafana's own linter and those that need the catalogs. */
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
    ...lints.flatMap(({ name, dashboard: check }) => found(name, '', check?.(dashboard) ?? [])),
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
    ...lints.flatMap(({ name, panel: check }) => found(name, place, check?.(panel) ?? [])),
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
    return lints.flatMap(({ name, target: check }) => found(name, place, check?.(subject) ?? []));
  } catch (thrown) {
    return found('target-promql', place, [errorText(thrown)]);
  }
}

const found = (lint: string, place: string, faults: readonly string[]): DashboardFinding[] =>
  faults.map((fault) => ({ lint, place, fault }));
