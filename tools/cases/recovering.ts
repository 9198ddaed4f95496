import type { Plan, Series } from './case.ts';

type Labels = Readonly<Record<string, string>>;

const alerts = (alertname: string, labels: Labels, alertstate: string, values: string): Series => {
  const all = Object.entries({ alertname, alertstate, pack: 'recommended', severity: 'critical', ...labels });
  return { [`ALERTS{${all.map(([label, value]) => `${label}="${value}"`).join(', ')}}`]: values };
};

/** A plan that is checked in minute 40. The alert fires for `minutes` after the end of `of`, the alert on the outage. */
function end(
  alert: string,
  of: string,
  labels: Labels,
  window: '5m' | '30m',
  minutes: number,
  isAlsoPending = false,
): Plan {
  const fired = (values: string) => alerts(of, labels, 'firing', values);
  const here = { cluster: 'dc1', instance: 'a' };
  const at = 40;
  /** The values of an alert that fires until `before` minutes before the check. */
  const until = (before: number) => `_x10 1x${at - 10 - before} stale`;
  return {
    alert,
    ruleLabels: { window },
    at,
    bad: fired(until(minutes - 1)),
    good: isAlsoPending ? {} : alerts(of, labels, 'pending', '1x60'),
    edge: fired(until(minutes + 1)),
    reset: fired(`1x5 stale _x${at - minutes - 9} 0x40`),
    labels,
    value: '1',
    ending: { afterMinutes: minutes + 1 },
    ...(isAlsoPending && {
      silent: {
        'was pending until a minute ago': alerts(of, { ...labels, ...here }, 'pending', '1x38 stale'),
      },
    }),
    more: [
      ...(isAlsoPending
        ? [
            {
              shows: 'the alert on the outage is pending',
              series: alerts(of, { ...labels, ...here }, 'pending', '1x60'),
              at,
              fires: [{ labels: { ...labels, cluster: 'dc1' }, value: '1' }],
            },
          ]
        : []),
      {
        shows: 'the outage goes on: no moment is left between the two',
        series: alerts(of, { ...labels, ...here }, 'firing', '1x60'),
        at,
        fires: [{ labels: { ...labels, cluster: 'dc1' }, value: '1' }],
      },
      {
        shows: 'the literal alert of that name explains nothing',
        series: alerts(of, { ...labels, ...here, pack: 'spec' }, 'firing', until(minutes - 1)),
        at,
        fires: [],
      },
      {
        shows: 'the outage is over for a moment',
        series: alerts(of, { ...labels, ...here }, 'firing', until(1)),
        at,
        fires: [{ labels: { ...labels, cluster: 'dc1' }, value: '1' }],
      },
    ],
  };
}

/**
 * The cases in which the alert on the longer window fires, too: both windows begin with the outage, and the longer window ends
 * later.
 */
const longerFiresIn = new Set([
  'fires',
  'exactly on the threshold',
  'series missing',
  'two clusters of which one fails',
  'two environments with the same names of which one fails',
  'two agents that report the same',
  'the outage goes on: no moment is left between the two',
  'the outage is over for a moment',
]);
const shorterFiresIn = new Set([
  'the outage goes on: no moment is left between the two',
  'the outage is over for a moment',
]);

const bothEnds = (alert: string, of: string, labels: Labels): Plan[] => [
  {
    ...end(alert, of, labels, '5m', 2),
    sibling: { ruleLabels: { window: '30m' }, firesIn: longerFiresIn },
  },
  {
    ...end(alert, of, labels, '30m', 27),
    sibling: { ruleLabels: { window: '5m' }, firesIn: shorterFiresIn },
  },
];

const store = { store: 'main', kind: 'postgres', database: 'persistence' };
const history = { job: 'history', svc_service: 'history' };

/** The plans for alerts on outages that are over: `recovering` in src/monitoring/alert.ts. */
export const recoveringPlans: readonly Plan[] = [
  ...bothEnds('SvcStoreRecovering', 'SvcStoreDown', store),
  ...bothEnds('SvcServiceRecovering', 'SvcServiceDown', history),
  end('SvcAllRolesRecovering', 'SvcAllRolesDown', {}, '5m', 2, true),
  end('SvcRoleRecovering', 'SvcRoleUnhealthy', { svc_service: 'history' }, '5m', 2),
  end('SvcClusterRecovering', 'SvcClusterUnreachable', { remote_cluster: 'dc2' }, '5m', 2),
  end('SvcAgentsRecovering', 'SvcRoleUnwatched', { job: 'history' }, '5m', 2),
];
