import type { Plan, Series } from './plan.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const at = 'cluster="dc1", instance="a"';
const operation = 'operation="PersistenceGetWorkflowExecution"';
const buckets = (
  metric: string,
  labels: string,
  le: string,
  withinPercent: number,
  perMinute = 6000,
): Series => ({
  [`${metric}_bucket{${labels}, le="${le}"}`]: `0+${(withinPercent * perMinute) / 100}x60`,
  [`${metric}_bucket{${labels}, le="${le === '1' ? '2.5' : '1'}"}`]: `0+${perMinute}x60`,
  [`${metric}_bucket{${labels}, le="+Inf"}`]: `0+${perMinute}x60`,
  [`${metric}_count{${labels}}`]: `0+${perMinute}x60`,
});
const restarted = (metric: string, labels: string, le: string): Series => ({
  [`${metric}_bucket{${labels}, le="${le}"}`]: '9000000x5 0+6000x60',
  [`${metric}_bucket{${labels}, le="+Inf"}`]: '9900000x5 0+6000x60',
  [`${metric}_count{${labels}}`]: '9900000x5 0+6000x60',
});
const calls = (errors: string, requests: string): Series => ({
  [`svc_persistence_errors{${role}, ${operation}}`]: errors,
  [`svc_persistence_requests{${role}, ${operation}}`]: requests,
});

/** Of src/monitoring/rules/alerts/persistence.ts. */
export const persistencePlans: readonly Plan[] = [
  {
    alert: 'SvcPersistenceErrorRate',
    at: 15,
    bad: calls('0+720x20', '0+9000x20'),
    good: calls('0+60x20', '0+9000x20'),
    edge: calls('0+600x20', '0+9000x20'),
    reset: calls('900000x8 0+60x20', '900000x8 0+9000x20'),
    labels: history,
    value: '12',
    twice: '24',
    more: [
      {
        shows: 'instances and operations that stay below each by itself',
        series: Object.fromEntries(
          ['a', 'b', 'c', 'd'].map((instance) => [
            `svc_persistence_errors{cluster="dc1", instance="${instance}", ${role}, ${operation}}`,
            '0+240x20',
          ]),
        ),
        at: 15,
        fires: [{ labels: { cluster: 'dc1', ...history }, value: '16' }],
      },
      {
        shows: 'a series that is born with its first burst',
        series: {
          [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '_x10 9000x20',
          [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '0+9000x20',
        },
        at: 14,
        fires: [{ labels: { cluster: 'dc1', ...history }, value: '30' }],
      },
      {
        shows: 'a target that is new brings its old total along',
        series: {
          [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '_x10 9000x20',
          [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '_x10 90000x20',
        },
        at: 14,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcPersistenceErrorRatio',
    at: 15,
    bad: calls('0+12x20', '0+120x20'),
    good: calls('0+1x20', '0+120x20'),
    edge: calls('0+6x20', '0+120x20'),
    reset: calls('90000x8 0+1x20', '90000x8 0+120x20'),
    labels: history,
    value: '10%',
    more: [
      {
        shows: 'every second call of a quiet night',
        series: {
          [`svc_persistence_errors{${at}, ${role}, ${operation}}`]: '0+1x20',
          [`svc_persistence_requests{${at}, ${role}, ${operation}}`]: '0+2x20',
        },
        at: 15,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcPersistenceLatency',
    at: 15,
    bad: buckets('svc_persistence_latency', `${role}, ${operation}`, '1', 50),
    good: buckets('svc_persistence_latency', `${role}, ${operation}`, '1', 100),
    edge: buckets('svc_persistence_latency', `${role}, ${operation}`, '1', 99),
    reset: restarted('svc_persistence_latency', `${role}, ${operation}`, '1'),
    labels: { ...history, operation: 'PersistenceGetWorkflowExecution' },
    value: '2.47s',
    more: [
      {
        shows: 'one slow call in a quiet night',
        series: buckets('svc_persistence_latency', `${at}, ${role}, ${operation}`, '1', 50, 2),
        at: 15,
        fires: [],
      },
    ],
  },
];
