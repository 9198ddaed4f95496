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
import { type Query, type SeriesPanel, units } from './model.ts';
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
    .targets(panel.queries.map((_, index) => target(panel, index)));
  if (panel.state) builder.mappings(mappings(panel.state));
  return builder.build();
}

function target(panel: SeriesPanel, index: number): DataqueryBuilder {
  const query = panel.queries[index]!;
  const builder = new DataqueryBuilder()
    .refId(String.fromCharCode(65 + index))
    .datasource(datasource)
    .expr(query.expr);
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
