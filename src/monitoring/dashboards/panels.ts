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
import {
  type DashboardLink,
  DashboardLinkBuilder,
  type DataTransformerConfig,
  type DynamicConfigValue,
  type Panel as GrafanaPanel,
  MappingType,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as Heatmap, YAxisConfigBuilder } from '@grafana/grafana-foundation-sdk/heatmap';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as Stat } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as Timeline } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as Timeseries } from '@grafana/grafana-foundation-sdk/timeseries';
import type { Alert, DashboardName } from '../alert.ts';
import { alertsOf, pack } from '../packs.ts';
import {
  type AlertRef,
  type Column,
  type Panel,
  type Query,
  type SeriesPanel,
  type StateName,
  type Style,
  states,
  type TablePanel,
  units,
} from './dashboard.ts';

/** The source of every query, annotation and variable. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of a variable
export const datasource = { type: 'prometheus', uid: '${datasource}' };

/** What panels depend on in addition to their queries. */
export interface PanelContext {
  /** The dashboard that contains the panels. */
  on: DashboardName;
  titles: ReadonlyMap<DashboardName, string>;
  /** Thresholds by alert, if they differ from the shipped ones. */
  thresholds: Readonly<Record<string, number>>;
  /** The address of the folder `runbooks`; if it is empty, there are no links to runbooks. */
  runbookUrl: string;
}

const shown = [pack('recommended'), pack('slo')].flatMap(alertsOf);

/** The alert that a reference names. Throws if there is none. */
function alertOf({ alert: name, window }: AlertRef): Alert {
  const found = shown.find(
    (alert) => alert.name === name && (window === undefined || alert.labels?.window === window),
  );
  if (!found) throw new Error(`there is no alert ${name} ${window ?? ''}`);
  return found;
}

/** The value with which an alert compares. Throws if it compares with no value. */
export function limitOf(ref: AlertRef, thresholds: PanelContext['thresholds'] = {}): number {
  const { threshold: shipped, drawn } = alertOf(ref);
  const threshold = thresholds[ref.alert] ?? shipped;
  if (threshold === undefined) throw new Error(`${ref.alert} has no threshold`);
  return drawn ? drawn(threshold) : threshold;
}

const severityColours = { critical: 'red', warning: 'orange', info: 'blue' } as const;

/** A step of Grafana begins at its value, while an alert's condition begins beyond it. */
const aboveZero = 1e-6;

/** The thresholds of alerts as steps: green on the good side, the colour of the severity on the other. */
function steps(limits: readonly AlertRef[], context: PanelContext): Threshold[] {
  const bounds = limits
    .map((ref) => ({ ...alertOf(ref), value: limitOf(ref, context.thresholds) }))
    .sort((a, b) => a.value - b.value);
  const colours = bounds.map(({ severity }) => severityColours[severity] as string);
  const inOrder = bounds.some(({ isLow }) => isLow) ? [...colours, 'green'] : ['green', ...colours];
  return inOrder.map((color, index) => ({
    value: index === 0 ? null : bounds[index - 1]!.value || aboveZero,
    color,
  }));
}

function thresholds({ limits = [], anyIs }: Partial<Style>, context: PanelContext) {
  const drawn: Threshold[] = anyIs
    ? [
        { value: null, color: 'green' },
        { value: aboveZero, color: anyIs },
      ]
    : steps(limits, context);
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(drawn);
}

function mappings(state: StateName): ValueMapping[] {
  const entries = Object.entries<readonly [text: string, color: string]>(states[state]);
  const texts = entries.map(([value, [text, color]], index) => [value, { text, color, index }] as const);
  return [{ type: MappingType.ValueToText, options: Object.fromEntries(texts) }];
}

// biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's notation of the time and of all variables
const sameView = '${__url_time_range}&${__all_variables}';

/** Links to the runbooks of a panel's alerts, and to the dashboards that these alerts name. */
function linksOf(panel: Panel, { on, titles, runbookUrl }: PanelContext): DashboardLinkBuilder[] {
  const styles: readonly Style[] = panel.type === 'table' ? [panel, ...panel.columns] : [panel];
  const drawn = styles.flatMap(({ limits = [] }) => limits.map(({ alert }) => alert));
  const alerts = [...new Set([...drawn, ...(panel.runbooks ?? [])])].map((alert) => alertOf({ alert }));
  const others = new Set(alerts.map(({ dashboard }) => dashboard).filter((name) => name !== on));
  return [
    ...(runbookUrl ? alerts : []).map(({ name }) =>
      link(`Runbook ${name}`, `${runbookUrl}/${name}.md`).targetBlank(true),
    ),
    ...[...others].map((name) => link(`Dashboard ${titles.get(name)}`, `/d/svc-${name}?${sameView}`)),
  ];
}

export function link(title: string, url: string): DashboardLinkBuilder {
  const builder = new DashboardLinkBuilder(title).url(url);
  // The SDK's default would hide the link in a menu.
  delete (builder.build() as Partial<DashboardLink>).placement;
  return builder;
}

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
 * The legend: the query's name and every label that distinguishes its series, which are the labels of the first aggregation, the
 * outermost one in every query here. Throws if nothing is aggregated.
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
  // Failures by reason are a hundred series, nearly all of them 0: those that counted something are on top.
  if (isWide) legend.sortBy('Max').sortDesc(true);
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

/**
 * The minimum width of a column, narrow enough that the values of each table are visible on a screen of 1,440 pixels; Grafana's
 * default is 150.
 */
const minColumnPx = 90;
/** The width for the longest name of an alert. */
const linkedColumnPx = 250;

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
    .minWidth(minColumnPx)
    .showHeader(true)
    .targets(
      panel.columns.map(({ expr }, index) => queryOf(expr, index).instant().format(PromQueryFormat.Table)),
    )
    .transformations(transformations(panel));
  for (const column of panel.columns) builder.overrideByName(column.title, columnStyle(column, context));
  if (panel.linkedLabel)
    builder.overrideByName(panel.labels[panel.linkedLabel]!, [
      { id: 'custom.width', value: linkedColumnPx },
      ...(context.runbookUrl ? [toRunbook(context.runbookUrl)] : []),
    ]);
  if (panel.sortBy) builder.sortBy([new TableSortByFieldStateBuilder().displayName(panel.sortBy).desc(true)]);
  return builder.build();
}

function columnStyle(column: Column, context: PanelContext): DynamicConfigValue[] {
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
