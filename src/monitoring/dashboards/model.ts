import type { Dashboard as DashboardName } from '../rules/alert.ts';
import type { AlertRef } from './limits.ts';

/** Units of Grafana that the dashboards use, by what they mean here. */
export const units = {
  count: 'short',
  seconds: 's',
  /** A long time: in minutes, hours, days. */
  duration: 'dtdurations',
  /** Milliseconds since the epoch, shown as how long ago. */
  ago: 'dateTimeFromNow',
  bytes: 'decbytes',
  bytesPerSecond: 'Bps',
  share: 'percentunit',
  requestsPerSecond: 'reqps',
  perSecond: 'cps',
  msPerSecond: 'suffix: ms/s',
} as const;
export type UnitName = keyof typeof units;

/** What 1 and 0 say in words, and which of them is bad. */
export const states = {
  up: { 1: ['up', 'green'], 0: ['down', 'red'] },
  ok: { 1: ['ok', 'green'], 0: ['failing', 'red'] },
  ready: { 1: ['ready', 'green'], 0: ['not ready', 'red'] },
  compatible: { 1: ['compatible', 'green'], 0: ['mismatch', 'red'] },
  readOnly: { 1: ['read only', 'red'], 0: ['writable', 'green'] },
  degraded: { 1: ['degraded', 'red'], 0: ['saved', 'green'] },
  taken: { 1: ['taken', 'green'], 0: ['refused', 'red'] },
  on: { 1: ['on', 'green'], 0: ['off', 'orange'] },
  active: { 1: ['active', 'blue'] },
  yes: { 1: ['yes', 'blue'], 0: ['no', 'text'] },
} as const;
export type StateName = keyof typeof states;

/** An expression without the matchers of the dashboard's variables; they are put in when it is rendered. */
export interface Query {
  expr: string;
  /** Comes before the labels in the legend. */
  name?: string;
}

/** How a number is shown. */
export interface Look {
  unit: UnitName;
  state?: StateName;
  /** Alerts whose thresholds are drawn. */
  limits?: readonly AlertRef[];
  /** The colour of any number above 0, where what is counted is bad by itself. */
  anyIs?: 'red' | 'orange';
}

interface Common extends Look {
  title: string;
  /** What is seen, and when it is bad. */
  description: string;
  /** Alerts with other thresholds whose runbooks help here; those of `limits` are linked anyway. */
  runbooks?: readonly string[];
  /** Of 24. */
  width?: number;
  height?: number;
}

/** Lines over time, a big number now, states over time, or a distribution over time. */
export interface SeriesPanel extends Common {
  type: 'timeseries' | 'stat' | 'timeline' | 'heatmap';
  queries: readonly Query[];
  isStacked?: boolean;
}

export interface Column extends Look {
  title: string;
  expr: string;
}

/** Numbers of now: a row per label set, which is the same in all columns. */
export interface TablePanel extends Common {
  type: 'table';
  /** Titles of the labels' columns, in this order. */
  labels: Readonly<Record<string, string>>;
  columns: readonly Column[];
  /** Title of the column that sorts, greatest first. */
  sortBy?: string;
  /** Label whose value names a runbook. */
  linkedLabel?: string;
}

export type Panel = SeriesPanel | TablePanel;

export interface Row {
  title: string;
  panels: readonly Panel[];
}

/** A choice at the top: the values that `label` has in the series of `metric`. */
export interface Choice {
  name: string;
  label: string;
  title: string;
  metric: string;
}

export interface Dashboard {
  /** Its uid is this behind `svc-`. */
  name: DashboardName;
  title: string;
  description: string;
  /** Besides the data source and the cluster. */
  choices: readonly Choice[];
  rows: readonly Row[];
}
