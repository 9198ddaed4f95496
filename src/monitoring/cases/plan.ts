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
