import {
  BigValueColorMode,
  BigValueGraphMode,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  ScaleDistribution,
  ScaleDistributionConfigBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TableCellHeight,
  TableSortByFieldStateBuilder,
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import type {
  DataTransformerConfig,
  DynamicConfigValue,
  Panel as GrafanaPanel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as Heatmap, YAxisConfigBuilder } from '@grafana/grafana-foundation-sdk/heatmap';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as Stat } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as Timeline } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as Timeseries } from '@grafana/grafana-foundation-sdk/timeseries';
import { type Column, type Query, type SeriesPanel, type TablePanel, units } from './model.ts';
import { datasource, linksOf, mappings, type PanelContext, thresholds } from './parts.ts';

type Builder = Timeseries | Stat | Timeline | Heatmap;

const builders: Readonly<Record<SeriesPanel['type'], (panel: SeriesPanel) => Builder>> = {
  timeseries,
  stat,
  timeline,
  heatmap,
};

/** A panel of series in Grafana's schema, without its place. */
export function renderSeries(panel: SeriesPanel, context: PanelContext): GrafanaPanel {
  const builder = builders[panel.type](panel)
    .title(panel.title)
    .description(panel.description)
    .datasource(datasource)
    .unit(units[panel.unit])
    .links(linksOf(panel, context))
    .thresholds(thresholds(panel, context))
    .targets(panel.queries.map((_, index) => seriesQuery(panel, index)));
  if (panel.state) builder.mappings(mappings(panel.state));
  return builder.build();
}

const letter = (index: number): string => String.fromCharCode(65 + index);

const queryOf = (expr: string, index: number): DataqueryBuilder =>
  new DataqueryBuilder().refId(letter(index)).datasource(datasource).expr(expr);

function seriesQuery(panel: SeriesPanel, index: number): DataqueryBuilder {
  const query = panel.queries[index]!;
  const builder = queryOf(query.expr, index);
  if (panel.type === 'heatmap') return builder.range().format(PromQueryFormat.Heatmap).legendFormat('{{le}}');
  builder.legendFormat(legendOf(query));
  return panel.type === 'stat' ? builder.instant() : builder.range();
}

/**
 * The query's name and every label that tells its series apart: those of the first aggregation, which is the
 * outermost one in every query here. Throws where nothing is aggregated.
 */
export function legendOf({ expr, name }: Query): string {
  const [, labels] = /\bby \(([^)]*)\)/.exec(expr) ?? [];
  if (labels === undefined) throw new Error(`aggregate, so that the labels are known: ${expr}`);
  const shown = labels.split(', ').filter((label) => label !== 'le');
  return [...(name ? [name] : []), ...shown.map((label) => `{{${label}}}`)].join(' ');
}

const tooltip = () =>
  new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending);

function timeseries({ limits = [], isStacked, width = 0 }: SeriesPanel): Timeseries {
  const isWide = width >= 12;
  const legend = new VizLegendOptionsBuilder()
    .showLegend(true)
    .placement(isWide ? LegendPlacement.Right : LegendPlacement.Bottom)
    .displayMode(isWide ? LegendDisplayMode.Table : LegendDisplayMode.List)
    .calcs(isWide ? ['lastNotNull', 'max'] : []);
  const builder = new Timeseries()
    .lineWidth(1)
    .fillOpacity(isStacked ? 40 : 8)
    .showPoints(VisibilityMode.Never)
    .axisSoftMin(0)
    .legend(legend)
    .tooltip(tooltip());
  if (isStacked) builder.stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'));
  if (limits.length > 0)
    builder.thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
  return builder;
}

function stat(): Stat {
  return new Stat()
    .colorMode(BigValueColorMode.Background)
    .graphMode(BigValueGraphMode.None)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']).values(false).fields(''));
}

function timeline(): Timeline {
  return new Timeline()
    .showValue(VisibilityMode.Never)
    .rowHeight(0.8)
    .mergeValues(true)
    .fillOpacity(80)
    .lineWidth(0)
    .legend(new VizLegendOptionsBuilder().showLegend(false).displayMode(LegendDisplayMode.List))
    .tooltip(tooltip());
}

function heatmap({ unit }: SeriesPanel): Heatmap {
  return new Heatmap()
    .calculate(false)
    .yAxis(new YAxisConfigBuilder().unit(units[unit]))
    .scaleDistribution(new ScaleDistributionConfigBuilder().type(ScaleDistribution.Linear))
    .hideLegend();
}

/** A table in Grafana's schema, without its place. */
export function renderTable(panel: TablePanel, context: PanelContext): GrafanaPanel {
  const builder = new PanelBuilder()
    .title(panel.title)
    .description(panel.description)
    .datasource(datasource)
    .unit(units[panel.unit])
    .links(linksOf(panel, context))
    .thresholds(thresholds({}, context))
    .cellHeight(TableCellHeight.Sm)
    .showHeader(true)
    .targets(
      panel.columns.map(({ expr }, index) => queryOf(expr, index).instant().format(PromQueryFormat.Table)),
    )
    .transformations(transformations(panel));
  for (const column of panel.columns) builder.overrideByName(column.title, look(column, context));
  if (panel.linkedLabel && context.runbookUrl)
    builder.overrideByName(panel.labels[panel.linkedLabel]!, [toRunbook(context.runbookUrl)]);
  if (panel.sortBy) builder.sortBy([new TableSortByFieldStateBuilder().displayName(panel.sortBy).desc(true)]);
  return builder.build();
}

function look(column: Column, context: PanelContext): DynamicConfigValue[] {
  const { unit, state, limits, anyIs } = column;
  const hasSteps = limits !== undefined || anyIs !== undefined;
  const isColoured = state !== undefined || hasSteps;
  return [
    { id: 'unit', value: units[unit] },
    ...(state ? [{ id: 'mappings', value: mappings(state) }] : []),
    ...(hasSteps ? [{ id: 'thresholds', value: thresholds(column, context).build() }] : []),
    ...(isColoured ? [{ id: 'custom.cellOptions', value: { type: 'color-text' } }] : []),
  ];
}

const toRunbook = (runbookUrl: string): DynamicConfigValue => ({
  id: 'links',
  value: [{ title: 'Runbook', url: `${runbookUrl}/\${__value.raw}.md`, targetBlank: true }],
});

/** Merges the queries into one frame without the time, and names and orders the columns. */
function transformations({ labels, columns }: TablePanel): DataTransformerConfig[] {
  const values = columns.map(
    ({ title }, index) => [columns.length === 1 ? 'Value' : `Value #${letter(index)}`, title] as const,
  );
  const named = [...Object.entries(labels), ...values];
  return [
    { id: 'merge', options: {} },
    {
      id: 'organize',
      options: {
        excludeByName: { Time: true },
        indexByName: Object.fromEntries(named.map(([name], index) => [name, index])),
        renameByName: Object.fromEntries(named),
      },
    },
  ];
}
