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
import type { Dashboard as DashboardName } from '../rules/alert.ts';
import { gridWidth, laidOut } from './layout.ts';
import type { Choice, Dashboard, Panel } from './model.ts';
import { datasource, link } from './parts.ts';
import { clusterChoice, scoped } from './scope.ts';
import { renderSeries } from './series-panels.ts';
import { renderTable } from './table-panel.ts';

const tag = 'svc-agent';

/** A dashboard in Grafana's classic schema; equal input gives equal text. */
export function renderDashboard(of: Dashboard): GrafanaDashboard {
  const choices = [clusterChoice, ...of.choices];
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
      ...choices.map((choice, index) => variable(choice, choices.slice(0, index))),
    ])
    .annotations(annotations())
    .links([
      link('Dashboards', '')
        .type(DashboardLinkType.Dashboards)
        .tags([tag])
        .asDropdown(true)
        .includeVars(true)
        .keepTime(true),
    ]);
  return { ...builder.build(), panels: panelsOf(of, choices) };
}

/** Its values are those there are beside what is chosen before it; All matches series without the label too. */
function variable({ name, label, title, metric }: Choice, before: readonly Choice[]): QueryVariableBuilder {
  const query = `label_values(${scoped(metric, before)}, ${label})`;
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
  new AnnotationQueryBuilder()
    .name(name)
    .datasource(datasource)
    .enable(true)
    .iconColor(color)
    .expr(scoped(expr, [clusterChoice]));

const annotations = (): AnnotationQueryBuilder[] => [
  annotation(
    'Alerts',
    'red',
    'max by (cluster, alertname, severity) (ALERTS{alertstate="firing", alertname=~"Svc.+", severity!="info"})',
  )
    .titleFormat('{{alertname}}')
    .textFormat('{{severity}} in {{cluster}}')
    .step('60s'),
  annotation(
    'Failovers',
    'blue',
    '1000 * max by (cluster, domain) (svc_domain_last_failover_timestamp_seconds)',
  )
    .titleFormat('Failover of {{domain}}')
    .textFormat('as {{cluster}} sees it')
    .step('60s')
    .useValueForTime(true),
];

const rendered = (panel: Panel, choices: readonly Choice[], of: DashboardName): GrafanaPanel =>
  panel.type === 'table' ? renderTable(panel, choices, of) : renderSeries(panel, choices, of);

function panelsOf(
  { name, rows }: Dashboard,
  choices: readonly Choice[],
): NonNullable<GrafanaDashboard['panels']> {
  const panels: NonNullable<GrafanaDashboard['panels']> = [];
  let y = 0;
  for (const row of rows) {
    const gridPos = { x: 0, y, w: gridWidth, h: 1 };
    panels.push(
      new RowBuilder(row.title)
        .gridPos(gridPos)
        .id(panels.length + 1)
        .build(),
    );
    const { places, below } = laidOut(row.panels, y + 1);
    for (const [index, panel] of row.panels.entries())
      panels.push({ ...rendered(panel, choices, name), id: panels.length + 1, gridPos: places[index]! });
    y = below;
  }
  return panels;
}
