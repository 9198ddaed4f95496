import type { Column, Look, Query, SeriesPanel, StateName, TablePanel, UnitName } from './model.ts';

type Rest = Partial<Omit<SeriesPanel, 'type' | 'title' | 'description' | 'unit' | 'queries'>>;
type Shown = string | readonly (Query | string)[];

const queriesOf = (shown: Shown): readonly Query[] =>
  typeof shown === 'string'
    ? [{ expr: shown }]
    : shown.map((query) => (typeof query === 'string' ? { expr: query } : query));

const maker =
  (type: SeriesPanel['type']) =>
  (title: string, description: string, unit: UnitName, shown: Shown, rest: Rest = {}): SeriesPanel => ({
    type,
    title,
    description,
    unit,
    queries: queriesOf(shown),
    ...rest,
  });

export const timeseries = maker('timeseries');
export const stat = maker('stat');
const timelineOf = maker('timeline');

/** States over time, a line per series. */
export const timeline = (
  title: string,
  description: string,
  state: StateName,
  shown: Shown,
  rest: Rest = {},
): SeriesPanel => timelineOf(title, description, 'count', shown, { state, ...rest });

/** How values in seconds are distributed. */
export const heatmap = (title: string, description: string, expr: string, rest: Rest = {}): SeriesPanel => ({
  type: 'heatmap',
  title,
  description,
  unit: 'seconds',
  queries: [{ expr }],
  ...rest,
});

export const table = (
  title: string,
  description: string,
  labels: TablePanel['labels'],
  columns: readonly Column[],
  rest: Partial<Omit<TablePanel, 'type' | 'title' | 'description' | 'labels' | 'columns'>> = {},
): TablePanel => ({ type: 'table', title, description, unit: 'count', labels, columns, ...rest });

export const column = (title: string, unit: UnitName, expr: string, look: Partial<Look> = {}): Column => ({
  title,
  unit,
  expr,
  ...look,
});

/** A panel for each of the usual percentiles would hide how they lie together: one panel, three lines. */
export const percentiles = (of: (q: number) => string): readonly Query[] =>
  [0.5, 0.95, 0.99].map((q) => ({ name: `p${q * 100}`, expr: of(q) }));
