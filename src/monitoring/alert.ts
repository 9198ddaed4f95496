import type { Names } from './names.ts';

/** The severity of an alert: `critical` pages, `warning` creates a ticket, `info` is for the record. */
type Severity = 'critical' | 'warning' | 'info';

/** The dashboards; the `uid` of each is `svc-` and this name. */
export const dashboards = [
  ...['overview', 'frontend', 'history', 'matching', 'worker', 'task-latency', 'persistence'],
  ...['dr', 'backups', 'process', 'logs', 'agent'],
] as const;
export type DashboardName = (typeof dashboards)[number];

export type ThresholdUnit = 'none' | 'seconds' | 'share' | 'bytes' | 'binaryBytes';

/**
 * How long an alert on a state continues after the state was last seen, in Prometheus' notation. Two minutes would cover an
 * agent that restarts on its host; five also cover a pod that moves to another node, a restart of Prometheus, and probes that
 * run once a minute and failed twice. Ending an alert late costs less than ending it wrongly.
 */
export const keptFor = '5m';

/** One alert: a function of the installation's names and of its threshold. */
export interface Alert {
  name: `Svc${string}`;
  severity: Severity;
  /** The condition. Its lines stay as they are written. */
  expr(names: Names, threshold: number): string;
  /** The threshold, in the unit of the value that the condition compares. Without it the condition is a state. */
  threshold?: number;
  /** The unit of the threshold. Default: `none`. */
  unit?: ThresholdUnit;
  /** The value that dashboards draw instead of the threshold. */
  drawn?(threshold: number): number;
  /** Whether the alert fires below its threshold instead of above. */
  isLow?: true;
  /** How long the condition must hold, in Prometheus' notation; without it the alert fires at once. */
  for?: string;
  /**
   * Set if the condition is a state of the moment: the alert continues for `keptFor` after the state was last seen, so that a
   * missed scrape, a restart of an agent or an intermittent fault does not resolve it and notify again.
   */
  isState?: true;
  /** One sentence that names the subject by its labels. A Go template. */
  summary: string;
  /** What was measured. A Go template; `$threshold` stands for the threshold with its unit. */
  description: string;
  /** What to do first, for an operator who has no runbook at hand. */
  firstSteps: string;
  dashboard: DashboardName;
  /** Further labels, which distinguish rules of the same name. */
  labels?: Readonly<Record<string, string>>;
  /** Set if the result has no label `cluster`, because nothing is left that has it. */
  hasNoCluster?: true;
}

/** A recorded series, `level:metric:operation`; the level is the labels that remain. */
export interface Recording {
  record: string;
  expr(names: Names): string;
}

export interface RuleGroup {
  name: string;
  records?: readonly Recording[];
  /**
   * Prometheus evaluates and sends them in this order. An alert comes before the one that inhibits it and may end with it, so that
   * Alertmanager never has the end of the inhibitor alone.
   */
  alerts?: readonly Alert[];
}

/** An alert in a group, whose dashboard it has unless it names its own. */
type GroupedAlert = Omit<Alert, 'dashboard'> & Partial<Pick<Alert, 'dashboard'>>;

/** A group of alerts, most of which are on one dashboard. */
export const alertGroup = ({
  name,
  dashboard,
  alerts,
}: Pick<RuleGroup, 'name'> & Pick<Alert, 'dashboard'> & { alerts: readonly GroupedAlert[] }): RuleGroup => ({
  name,
  alerts: alerts.map((alert) => ({ dashboard, ...alert })),
});

export const packNames = ['spec', 'recommended', 'recording', 'slo'] as const;
export type PackName = (typeof packNames)[number];

/** The rules of one file. */
export interface Pack {
  name: PackName;
  groups: readonly RuleGroup[];
}

const trimmed = (value: number): string => String(Number(value.toPrecision(4)));

/** A number with its unit, in the form in which a description shows it beside the formatted value. */
export function withUnit(value: number, unit: ThresholdUnit = 'none'): string {
  switch (unit) {
    case 'seconds':
      return durationText(value);
    case 'share':
      return `${trimmed(value * 100)}%`;
    case 'bytes':
      return scaled(value, 1000, ['B', 'kB', 'MB', 'GB', 'TB']);
    case 'binaryBytes':
      return scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
    default:
      return trimmed(value);
  }
}

function scaled(value: number, base: number, units: readonly string[]): string {
  const step = Math.min(Math.floor(Math.log(Math.max(value, 1)) / Math.log(base)), units.length - 1);
  return `${trimmed(value / base ** step)}${units[step]}`;
}

const spans = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'm'],
  [1, 's'],
] as const;

/** Seconds in the form of Prometheus' `humanizeDuration`, without units that are 0. */
function durationText(seconds: number): string {
  if (seconds < 1) return `${trimmed(seconds * 1000)}ms`;
  let rest = seconds;
  const parts = spans.map(([length, unit]) => {
    const count = length === 1 ? Number(trimmed(rest)) : Math.floor(rest / length);
    rest -= count * length;
    return count > 0 ? `${count}${unit}` : '';
  });
  return parts.filter(Boolean).join(' ');
}

/**
 * How long alerts on windows of a length can see an outage after the alert on the outage has ended: the window, plus two minutes
 * for scrapes, evaluations and clients that connect again, minus `keptFor`, by which that alert outlives the outage.
 */
const seenFor = { '5m': '2m', '30m': '27m' } as const;
type Window = keyof typeof seenFor;

/** The end of an outage, according to the alert on it. */
interface OutageEnd {
  name: Alert['name'];
  /** The alert that is over. */
  of: Alert['name'];
  /** The labels that the inhibitions of the alert need. */
  by: string;
  /** What was down, as the beginning of a sentence. */
  subject: string;
  /** The windows of the alerts that the outage explains. */
  windows: readonly Window[];
  /**
   * Set if the outage explains alerts that may fire before its own alert does: this alert then fires as soon as that alert is
   * pending.
   */
  isAlsoPending?: true;
}

/**
 * Alerts for the record that there is an outage, or was one a short time ago. They are the second source of the inhibitions that
 * the outage's own alert begins: an alert on a window still sees the outage when the first source is over. They begin together
 * with the outage, so that Alertmanager always has a source; until the outage ends the first source prevents them from notifying.
 * They read ALERTS, so that an outage that never fired explains nothing.
 */
export const recovering = ({ name, of, by, subject, windows, isAlsoPending }: OutageEnd): GroupedAlert[] =>
  windows.map((window) => ({
    name,
    severity: 'info',
    expr: () => {
      const inState = (state: string) =>
        `ALERTS{alertname="${of}", alertstate="${state}", pack="recommended"}`;
      const fired = `max by (${by}) (max_over_time(${inState('firing')}[${seenFor[window]}])) == 1`;
      return isAlsoPending ? `${fired}\nor max by (${by}) (${inState('pending')})` : fired;
    },
    labels: { window },
    summary: `${subject} is down, or was within the last ${seenFor[window]}.`,
    description: `${of} fires, or fired within the last ${seenFor[window]} (ALERTS was {{ $value }}). Until this alert ends, alerts that the outage explains stay inhibited, if their window is ${window} or less.`,
    firstSteps: `Wait until this alert ends. Alerts that fire after that have a cause other than ${of}.`,
  }));
