/** `critical` wakes somebody, `warning` makes a ticket, `info` is looked at when somebody looks. */
export const severities = ['critical', 'warning', 'info'] as const;
export type Severity = (typeof severities)[number];

/** Dashboards by what their `uid` says after `svc-`. */
export const dashboards = [
  ...['overview', 'frontend', 'history', 'matching', 'worker', 'task-latency', 'persistence'],
  ...['dr', 'backups', 'process', 'logs', 'agent'],
] as const;
export type Dashboard = (typeof dashboards)[number];

/**
 * One alert as data. `$threshold` in the expression and the description stands for the threshold. Expressions
 * use the unprefixed names and the contract's job names; both are rewritten when they are rendered.
 */
export interface Alert {
  name: `Svc${string}`;
  severity: Severity;
  expr: string;
  /** In the unit of what it is compared with. */
  threshold?: number;
  /** How long the condition must hold, in Prometheus' notation; none: at once. */
  for?: string;
  /** The same words for every series. */
  summary: string;
  /** A Go template with the labels and the value with its unit. */
  description: string;
  dashboard: Dashboard;
  /** Labels of its own, which tell rules of the same name apart. */
  labels?: Readonly<Record<string, string>>;
}

/** A recorded series, `level:metric:operation`; the level is the labels that are kept. */
export interface Recording {
  record: string;
  expr: string;
}

export interface RuleGroup {
  name: string;
  records?: readonly Recording[];
  alerts?: readonly Alert[];
}

/** What is loaded together: one file. */
export interface Pack {
  name: PackName;
  groups: readonly RuleGroup[];
}

export const packNames = ['spec', 'recommended', 'recording', 'slo'] as const;
export type PackName = (typeof packNames)[number];
