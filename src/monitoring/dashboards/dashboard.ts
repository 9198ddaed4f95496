import type { DashboardName } from '../alert.ts';
import type { Choice, Queries } from './queries.ts';

/** The units of Grafana that the dashboards use, by their purpose here. */
export const units = {
  count: 'short',
  seconds: 's',
  /** A long time, in minutes, hours or days. */
  duration: 'dtdurations',
  /** Milliseconds since the epoch, shown as the time since then. */
  ago: 'dateTimeFromNow',
  bytes: 'decbytes',
  bytesPerSecond: 'Bps',
  share: 'percentunit',
  requestsPerSecond: 'reqps',
  perSecond: 'cps',
  msPerSecond: 'suffix: ms/s',
} as const;
type UnitName = keyof typeof units;

/** The meaning of 1 and 0, and their colours. */
export const states = {
  up: { 1: ['up', 'green'], 0: ['down', 'red'] },
  ok: { 1: ['ok', 'green'], 0: ['failing', 'red'] },
  ready: { 1: ['ready', 'green'], 0: ['not ready', 'red'] },
  compatible: { 1: ['compatible', 'green'], 0: ['mismatch', 'red'] },
  readOnly: { 1: ['read only', 'red'], 0: ['writable', 'green'] },
  degraded: { 1: ['degraded', 'red'], 0: ['saved', 'green'] },
  taken: { 1: ['loaded', 'green'], 0: ['rejected', 'red'] },
  on: { 1: ['on', 'green'], 0: ['off', 'text'] },
  active: { 1: ['active', 'blue'] },
  lasts: { 1: ['lasts', 'red'] },
  yes: { 1: ['yes', 'blue'], 0: ['no', 'text'] },
} as const;
export type StateName = keyof typeof states;

export interface Query {
  expr: string;
  /** The first word of the legend, before the labels. */
  name?: string;
}

/** An alert whose threshold is drawn. If there are several with that name, it is the one with this window. */
export interface AlertRef {
  alert: string;
  window?: string;
}

/** Alerts by their names, as `limits` take them. */
export const at = (...alerts: string[]): readonly AlertRef[] => alerts.map((alert) => ({ alert }));

/** How a number is shown. */
export interface Style {
  unit: UnitName;
  state?: StateName;
  /** Alerts whose thresholds are drawn. */
  limits?: readonly AlertRef[];
  /** The colour of any number above 0, if what is counted is bad by itself. */
  anyIs?: 'red' | 'orange';
}

interface Common extends Style {
  title: string;
  /** What is shown, and when it is bad. */
  description: string;
  /** Further alerts whose runbooks help here. */
  runbooks?: readonly string[];
  /** The width in columns; a dashboard has 24. */
  width?: number;
  height?: number;
}

/** A panel with lines over time, a number, states over time, or a distribution over time. */
export interface SeriesPanel extends Common {
  type: 'timeseries' | 'stat' | 'timeline' | 'heatmap';
  queries: readonly Query[];
  isStacked?: boolean;
}

export interface Column extends Style {
  title: string;
  expr: string;
}

/** A table of current numbers. Each row is a label set, which is the same in all columns. */
export interface TablePanel extends Common {
  type: 'table';
  /** Titles of the labels' columns, in this order. */
  labels: Readonly<Record<string, string>>;
  columns: readonly Column[];
  /** Title of the column that sorts, descending. */
  sortBy?: string;
  /** The label whose value names a runbook. */
  linkedLabel?: string;
}

export type Panel = SeriesPanel | TablePanel;

export interface PanelRow {
  title: string;
  panels: readonly Panel[];
}

export interface Dashboard {
  /** The name; the uid is `svc-` and this name. */
  name: DashboardName;
  title: string;
  description: string;
  /** Variables in addition to the data source, the environment and the cluster. */
  choices: readonly Choice[];
  rows(queries: Queries): readonly PanelRow[];
}

type Rest = Partial<Omit<SeriesPanel, 'type' | 'title' | 'description' | 'unit' | 'queries'>>;
type QueryList = string | readonly (Query | string)[];

const listOf = (shown: QueryList): readonly Query[] =>
  (typeof shown === 'string' ? [shown] : shown).map((query) =>
    typeof query === 'string' ? { expr: query } : query,
  );

const maker =
  (type: SeriesPanel['type']) =>
  (title: string, description: string, unit: UnitName, shown: QueryList, rest: Rest = {}): SeriesPanel => ({
    type,
    title,
    description,
    unit,
    queries: listOf(shown),
    ...rest,
  });

export const timeseries = maker('timeseries');
export const stat = maker('stat');
const timelineOf = maker('timeline');

/** A panel of states over time, one line per series. */
export const timeline = (
  title: string,
  description: string,
  state: StateName,
  shown: QueryList,
  rest: Rest = {},
): SeriesPanel => timelineOf(title, description, 'count', shown, { state, ...rest });

/** A panel with the distribution of values in seconds. */
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

export const column = (title: string, unit: UnitName, expr: string, style: Partial<Style> = {}): Column => ({
  title,
  unit,
  expr,
  ...style,
});

/** The usual percentiles in one panel, so that their distance is visible. */
export const percentiles = (of: (q: number) => string): readonly Query[] =>
  [0.5, 0.95, 0.99].map((q) => ({ name: `p${q * 100}`, expr: of(q) }));
