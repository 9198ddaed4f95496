/** Series by `name{labels}`, without `cluster`, `instance` and `pod`; values in promtool's notation, one a minute. */
export type Series = Readonly<Record<string, string>>;

/** What an alert does some minutes after the end of its series: it stays with this value, or it is gone. */
interface Ending {
  afterMinutes: number;
  /** The value; missing if the alert is gone. */
  value?: string;
}

/**
 * How one alert is shown to fire and to stay silent. Values are written by hand according to the meaning of the condition:
 * nothing here is computed from the rule.
 */
export interface Plan {
  alert: string;
  /** Labels of the rule itself, which distinguish rules with the same name. */
  ruleLabels?: Readonly<Record<string, string>>;
  /** When the alert is checked, in minutes; enough for the range and `for`. */
  at: number;
  /** Minutes between samples, and between evaluations. Default: 1. */
  every?: number;
  bad: Series;
  good: Series;
  /** Series exactly on the threshold; for a condition that is a state, series in which the state has not held long enough. */
  edge: Series;
  /** When `edge` is checked, if at another time. */
  edgeAt?: number;
  /** Series in which a counter starts again, or a state was interrupted. */
  reset: Series;
  /** Labels of the alert, in addition to `cluster` and `instance`. */
  labels: Readonly<Record<string, string>>;
  /** Whether the alert names the instance, and the pod, too: two instances are then two alerts. */
  instance?: true | 'with pod';
  /** The outcome when one agent reports the bad series and another agent the good series. */
  agentsDiffer?: 'fires' | 'is silent';
  /** `$value` as the description shows it. */
  value: string;
  /** The value if two instances have the bad series and the rule adds them up. Default: `value`, for rules that do not. */
  twice?: string;
  /** What happens after the series have ended. Default: the alert is gone after 20 minutes. */
  ending?: Ending;
  /** Further complete series on which the alert stays silent, by what they show. */
  silent?: Readonly<Record<string, Series>>;
  /** Further cases for which the alert exists, each with its own series. */
  more?: readonly OwnExtra[];
  /** A rule of the same name with other labels that fires in some of these cases: promtool compares all alerts of a name. */
  sibling?: Sibling;
}

interface Sibling {
  ruleLabels: Readonly<Record<string, string>>;
  /** The cases in which the sibling fires, by what they show. */
  firesIn: ReadonlySet<string>;
}

export interface Extra {
  shows: string;
  /** Complete series, including `cluster` and `instance`. */
  series: Series;
  /** When the case is checked, if at another time than the plan. */
  at?: number;
  fires: readonly Firing[];
}

/** A further case. A value stands for the plan's own alert with this value. */
type OwnExtra = Omit<Extra, 'fires'> & { fires: Extra['fires'] | string };

export interface Firing {
  labels: Readonly<Record<string, string>>;
  value: string;
}

/** The cases of an alert that fits no plan, such as one for something that is absent; all are written by hand. */
export type HandWritten = Pick<Plan, 'alert' | 'ruleLabels' | 'at' | 'every' | 'silent'> & {
  cases: readonly Extra[];
};

/** Series on which an alert fires: the plan's own alert with this value, or these alerts. */
export const fires = <F extends OwnExtra['fires']>(shows: string, fires: F, series: Series) => ({
  shows,
  series,
  fires,
});

/** Series on which an alert stays silent; `at` is the time of the check if it differs from the plan's. */
export const silent = (shows: string, series: Series, at?: number): Extra => ({
  ...{ shows, series, fires: [] },
  ...(at !== undefined && { at }),
});

/** One gauge with these labels, as a function of its values. */
export const series =
  (name: string, labels: string) =>
  (values: string): Series => ({ [`${name}{${labels}}`]: values });

type Scenes<T> = Readonly<Record<'bad' | 'good' | 'edge' | 'reset', T>>;

/** The four scenes of a plan in which one series has these values. */
export const scenes = (
  of: (values: string) => Series,
  { bad, good, edge, reset }: Scenes<string>,
): Scenes<Series> => ({
  bad: of(bad),
  good: of(good),
  edge: of(edge),
  reset: of(reset),
});

/** The series with the label of the environment to which they belong. */
export const within = (environment: string, series: Series): Series =>
  Object.fromEntries(
    Object.entries(series).map(([key, values]) => [
      key.replace('{', `{environment="${environment}", `),
      values,
    ]),
  );

/** The plan of a gauge that is 1 or 0 and must have the failing value for `hold` minutes. */
export function state(
  alert: string,
  gauge: (values: string) => Series,
  hold: number,
  labels: Plan['labels'],
  failing: 0 | 1 = 0,
): Plan {
  const healthy = 1 - failing;
  const moment = hold + 10;
  const run = (value: number, samples: number) => (samples > 0 ? `${value}x${samples - 1} ` : '');
  /** The state fails twice, each time for less than `hold`. */
  const interrupted = run(healthy, moment - 2 * hold + 1) + run(failing, Math.min(hold - 1, 10));
  return {
    alert,
    at: moment,
    bad: gauge(`${healthy} ${failing}x200`),
    good: gauge(`${healthy}x200`),
    edge: gauge(`${healthy}x${moment - hold} ${failing}x200`),
    reset: gauge(`${interrupted}${healthy} ${failing}x200`),
    labels,
    value: String(failing),
    agentsDiffer: failing === 1 ? 'fires' : 'is silent',
  };
}
