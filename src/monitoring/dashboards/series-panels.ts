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
  TooltipDisplayMode,
  VisibilityMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import type { Panel as GrafanaPanel } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as Heatmap, YAxisConfigBuilder } from '@grafana/grafana-foundation-sdk/heatmap';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as Stat } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as Timeline } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as Timeseries } from '@grafana/grafana-foundation-sdk/timeseries';
import type { Dashboard as DashboardName } from '../rules/alert.ts';
import { legendOf } from './legend.ts';
import { type Choice, type SeriesPanel, units } from './model.ts';
import { datasource, linksOf, mappings, thresholds } from './parts.ts';
import { scoped } from './scope.ts';

type Builder = Timeseries | Stat | Timeline | Heatmap;

const builders: Readonly<Record<SeriesPanel['type'], (panel: SeriesPanel) => Builder>> = {
  timeseries,
  stat,
  timeline,
  heatmap,
};

/** A panel of series as Grafana reads it, without its place. */
export function renderSeries(
  panel: SeriesPanel,
  choices: readonly Choice[],
  of: DashboardName,
): GrafanaPanel {
  const builder = builders[panel.type](panel)
    .title(panel.title)
    .description(panel.description)
    .datasource(datasource)
    .unit(units[panel.unit])
    .links(linksOf(panel, of))
    .thresholds(thresholds(panel))
    .targets(panel.queries.map((_, index) => target(panel, index, choices)));
  if (panel.state) builder.mappings(mappings(panel.state));
  return builder.build();
}

function target(panel: SeriesPanel, index: number, choices: readonly Choice[]): DataqueryBuilder {
  const { expr, name } = panel.queries[index]!;
  const query = new DataqueryBuilder()
    .refId(String.fromCharCode(65 + index))
    .datasource(datasource)
    .expr(scoped(expr, choices));
  if (panel.type === 'heatmap') return query.range().format(PromQueryFormat.Heatmap).legendFormat('{{le}}');
  query.legendFormat(legendOf(expr, name));
  return panel.type === 'stat' ? query.instant() : query.range();
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
