import { columnName } from '../../tools/grafana.ts';
import { appearanceOf, type Canvas, unitOf } from './drawing.ts';
import { escaped, formatted } from './format.ts';

interface Cell {
  text: string;
  colour?: string;
  value: number;
}

/** A table: a row per label set, the columns that the dashboard names. */
export function rows({ panel, shown, height, to }: Canvas): string {
  const organize = panel.transformations?.find(({ id }) => id === 'organize')?.options as {
    renameByName: Record<string, string>;
  };
  const labels = Object.entries(organize.renameByName).filter(([name]) =>
    shown.some(({ series }) => series.some(({ metric }) => metric[name])),
  );
  const titles = shown.map(({ target }) => columnName(panel, target)!);
  const byLabels = new Map<string, { metric: Record<string, string>; cells: Map<string, Cell> }>();
  for (const { target, series } of shown)
    for (const { metric, values } of series) {
      const key = JSON.stringify(labels.map(([label]) => metric[label] ?? ''));
      const row = byLabels.get(key) ?? { metric, cells: new Map() };
      byLabels.set(key, row);
      const value = values.at(-1)![1];
      const appearance = appearanceOf(panel, target, value);
      const colour = panel.fieldConfig!.overrides.some(
        ({ matcher, properties }) =>
          matcher.options === columnName(panel, target) &&
          properties.some(({ id }) => id === 'custom.cellOptions'),
      )
        ? appearance.colour
        : undefined;
      row.cells.set(columnName(panel, target)!, {
        text: appearance.text ?? formatted(value, unitOf(panel, target), to),
        colour,
        value,
      });
    }
  const sortBy = (panel as { options?: { sortBy?: { displayName: string }[] } }).options?.sortBy?.[0]
    ?.displayName;
  const sorted = [...byLabels.values()].sort(
    (a, b) => (b.cells.get(sortBy ?? '')?.value ?? -1) - (a.cells.get(sortBy ?? '')?.value ?? -1),
  );
  const head = [...labels.map(([, title]) => title), ...titles].map((title) => `<th>${escaped(title)}</th>`);
  const body = sorted.slice(0, Math.floor(height / 22) - 1).map(({ metric, cells }) => {
    const words = labels.map(([label]) => `<td>${escaped(metric[label] ?? '')}</td>`);
    const numbers = titles.map((title) => {
      const cell = cells.get(title);
      return `<td style="color:${cell?.colour ?? '#d8d9da'}">${escaped(cell?.text ?? '')}</td>`;
    });
    return `<tr>${words.join('')}${numbers.join('')}</tr>`;
  });
  return `<table><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('')}</tbody></table>`;
}
