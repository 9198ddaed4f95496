import {
  AnnotationQueryBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkType,
  DatasourceVariableBuilder,
  type Dashboard as GrafanaDashboard,
  type Panel as GrafanaPanel,
  QueryVariableBuilder,
  RowBuilder,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { DashboardName } from '../alert.ts';
import type { Dashboard, Panel } from './dashboard.ts';
import { agent } from './pages/agent.ts';
import { backups } from './pages/backups.ts';
import { frontend } from './pages/frontend.ts';
import { history } from './pages/history.ts';
import { logs } from './pages/logs.ts';
import { matching } from './pages/matching.ts';
import { overview } from './pages/overview.ts';
import { persistence } from './pages/persistence.ts';
import { processes } from './pages/process.ts';
import { replication } from './pages/replication.ts';
import { taskLatency } from './pages/task-latency.ts';
import { workerAndArchival } from './pages/worker.ts';
import { datasource, link, type PanelContext, renderSeries, renderTable } from './panels.ts';
import { type Choice, type QueryOptions, queriesFor, siteChoices } from './queries.ts';

const pages: readonly Dashboard[] = [
  ...[overview, frontend, history, matching, workerAndArchival, taskLatency, persistence],
  ...[replication, backups, processes, logs, agent],
];
const titles: ReadonlyMap<DashboardName, string> = new Map(pages.map(({ name, title }) => [name, title]));

const tag = 'svc-agent';

/** How an installation differs from the shipped dashboards. */
export interface DashboardOptions extends QueryOptions, Pick<PanelContext, 'thresholds' | 'runbookUrl'> {}

export const shippedDashboardOptions: DashboardOptions = {
  prefix: '',
  jobs: {},
  matchers: {},
  thresholds: {},
  runbookUrl: '',
};

/** A dashboard in Grafana's classic schema; equal options result in equal text. */
export function renderDashboard(name: DashboardName, options: DashboardOptions): GrafanaDashboard {
  const of = pages.find((page) => page.name === name)!;
  const choices = [...siteChoices, ...of.choices];
  const { s } = queriesFor(options, siteChoices);
  const context: PanelContext = { ...options, on: name, titles };
  const builder = new DashboardBuilder(`Svc / ${of.title}`)
    .uid(`svc-${of.name}`)
    .description(of.description)
    .tags([tag])
    .timezone('utc')
    .time({ from: 'now-3h', to: 'now' })
    .refresh('1m')
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .variables([
      new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'),
      ...choices.map((choice, index) => variable(choice, choices.slice(0, index), options)),
    ])
    .annotations(annotations(s))
    .links([
      link('Dashboards', '')
        .type(DashboardLinkType.Dashboards)
        .tags([tag])
        .asDropdown(true)
        .includeVars(true)
        .keepTime(true),
    ]);
  return { ...builder.build(), panels: panelsOf(of, queriesFor(options, choices), context) };
}

/** A variable with the values that fit the choices before it; All also matches series without the label. */
function variable(
  { name, label, title, metric }: Choice,
  before: readonly Choice[],
  options: QueryOptions,
): QueryVariableBuilder {
  const query = `label_values(${queriesFor(options, before).s(metric)}, ${label})`;
  return new QueryVariableBuilder(name)
    .label(title)
    .datasource(datasource)
    .query(query)
    .definition(query)
    .multi(true)
    .includeAll(true)
    .allValue('.*')
    .current({ text: ['All'], value: ['$__all'] })
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc);
}

const annotation = (name: string, color: string, expr: string): AnnotationQueryBuilder =>
  new AnnotationQueryBuilder().name(name).datasource(datasource).enable(true).iconColor(color).expr(expr);

const annotations = (s: (series: string) => string): AnnotationQueryBuilder[] => [
  annotation(
    'Alerts',
    'red',
    `max by (cluster, alertname, severity) (${s('ALERTS{alertstate="firing", alertname=~"Svc.+", severity!="info"}')})`,
  )
    .titleFormat('{{alertname}}')
    .textFormat('{{severity}} in {{cluster}}')
    .step('60s'),
  annotation(
    'Failovers',
    'blue',
    `1000 * max by (cluster, domain) (${s('svc_domain_last_failover_timestamp_seconds')})`,
  )
    .titleFormat('Failover of {{domain}}')
    .textFormat('seen in {{cluster}}')
    .step('60s')
    .useValueForTime(true),
];

const sizes: Readonly<Record<Panel['type'], readonly [width: number, height: number]>> = {
  timeseries: [8, 8],
  stat: [4, 4],
  timeline: [12, 7],
  heatmap: [12, 8],
  table: [24, 9],
};
const gridWidth = 24;

/** A position on Grafana's grid of 24 columns. */
interface GridPosition {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Places panels side by side from line `y` on, as many as fit in a line; `below` is the line after them. */
export function laidOut(
  panels: readonly Panel[],
  y: number,
): { places: readonly GridPosition[]; below: number } {
  const places: GridPosition[] = [];
  let [x, top, below] = [0, y, y];
  for (const { type, width, height } of panels) {
    const [w, h] = [width ?? sizes[type][0], height ?? sizes[type][1]];
    if (x + w > gridWidth) [x, top] = [0, below];
    places.push({ x, y: top, w, h });
    x += w;
    below = Math.max(below, top + h);
  }
  return { places, below };
}

function panelsOf(
  { rows }: Dashboard,
  queries: ReturnType<typeof queriesFor>,
  context: PanelContext,
): NonNullable<GrafanaDashboard['panels']> {
  const panels: NonNullable<GrafanaDashboard['panels']> = [];
  const rendered = (panel: Panel): GrafanaPanel =>
    panel.type === 'table' ? renderTable(panel, context) : renderSeries(panel, context);
  let y = 0;
  for (const row of rows(queries)) {
    const gridPos = { x: 0, y, w: gridWidth, h: 1 };
    panels.push(
      new RowBuilder(row.title)
        .gridPos(gridPos)
        .id(panels.length + 1)
        .build(),
    );
    const { places, below } = laidOut(row.panels, y + 1);
    for (const [index, panel] of row.panels.entries())
      panels.push({ ...rendered(panel), id: panels.length + 1, gridPos: places[index]! });
    y = below;
  }
  return panels;
}
