import { TableCellHeight, TableSortByFieldStateBuilder } from '@grafana/grafana-foundation-sdk/common';
import type {
  DataTransformerConfig,
  DynamicConfigValue,
  Panel as GrafanaPanel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/table';
import { type Column, type TablePanel, units } from './model.ts';
import { datasource, linksOf, mappings, type PanelContext, thresholds } from './parts.ts';

const letter = (index: number): string => String.fromCharCode(65 + index);

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
    .targets(panel.columns.map(({ expr }, index) => target(expr, index)))
    .transformations(transformations(panel));
  for (const column of panel.columns) builder.overrideByName(column.title, look(column, context));
  if (panel.linkedLabel && context.runbookUrl)
    builder.overrideByName(panel.labels[panel.linkedLabel]!, [toRunbook(context.runbookUrl)]);
  if (panel.sortBy) builder.sortBy([new TableSortByFieldStateBuilder().displayName(panel.sortBy).desc(true)]);
  return builder.build();
}

const target = (expr: string, index: number): DataqueryBuilder =>
  new DataqueryBuilder()
    .refId(letter(index))
    .datasource(datasource)
    .expr(expr)
    .instant()
    .format(PromQueryFormat.Table);

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
