import type { Plan, Series } from './plan.ts';

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
