/** Series by `name{labels}`, without `cluster`, `instance` and `pod`; values in promtool's notation, one a minute. */
export type Series = Readonly<Record<string, string>>;

/** What an alert does when its series have ended for some minutes: it stays, saying this, or it is gone. */
export interface Ending {
  afterMinutes: number;
  /** Nothing: it is gone. */
  value?: string;
}

/**
 * How one alert is shown to fire and to stay silent. Values are written by hand from the meaning of the
 * condition: nothing here is computed from the rule.
 */
export interface Plan {
  alert: string;
  /** Tells rules of one name apart: labels that the rule itself adds. */
  ruleLabels?: Readonly<Record<string, string>>;
  /** When it is looked at, in minutes; enough for range and hold. */
  at: number;
  /** Minutes from sample to sample, and from look to look. Default: 1. */
  every?: number;
  bad: Series;
  good: Series;
  /** Exactly on the threshold; where a condition is a state, the moment at which it has not held long enough. */
  edge: Series;
  /** When `edge` is looked at, if at another time. */
  edgeAt?: number;
  /** A counter that starts again, or a state that was interrupted. */
  reset: Series;
  /** Labels of the alert, beside `cluster` and `instance`. */
  labels: Readonly<Record<string, string>>;
  /** Whether the alert names the instance, and the pod too: two instances are then two alerts. */
  instance?: true | 'with pod';
  /** What comes of one agent that has the bad series and one that has the good one, of what both report. */
  agentsDiffer?: 'fires' | 'is silent';
  /** `$value` as the description shows it. */
  value: string;
  /** The same where two instances have the bad series, and it adds up. Default: `value`, since it does not. */
  twice?: string;
  /** Series that have ended. Default: gone after 20 minutes. */
  ending?: Ending;
  /** More of what the alert is for, each with its own series. */
  more?: readonly Extra[];
}

export interface Extra {
  shows: string;
  /** Complete series, `cluster` and `instance` included. */
  series: Series;
  at: number;
  fires: readonly Firing[];
}

export interface Firing {
  labels: Readonly<Record<string, string>>;
  value: string;
}

/** An alert that fits no plan, such as one on what is absent: all its cases by hand. */
export interface HandWritten {
  alert: string;
  ruleLabels?: Readonly<Record<string, string>>;
  every?: number;
  cases: readonly Extra[];
}

/** One gauge with these labels, as a function of its values. */
export const series =
  (name: string, labels: string) =>
  (values: string): Series => ({ [`${name}{${labels}}`]: values });

/** A state that is either well or ill, and must be ill for `hold` minutes: the plan of many gauges. */
export function state(
  alert: string,
  gauge: (values: string) => Series,
  hold: number,
  labels: Plan['labels'],
  ill: 0 | 1 = 0,
): Plan {
  const well = 1 - ill;
  const moment = hold + 10;
  return {
    alert,
    at: moment,
    bad: gauge(`${well} ${ill}x200`),
    good: gauge(`${well}x200`),
    edge: gauge(`${well}x${moment - hold} ${ill}x200`),
    reset: gauge(`${ill}x${moment - 3} ${well} ${ill}x200`),
    labels,
    value: String(ill),
    agentsDiffer: ill === 1 ? 'fires' : 'is silent',
  };
}
