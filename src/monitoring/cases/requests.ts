import type { Plan, Series } from './plan.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const at = 'cluster="dc1", instance="a"';
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
const requests = (errors: string, total: string): Series => ({
  [`svc_matching_client_errors{${role}, operation="AddActivityTask"}`]: errors,
  [`svc_matching_client_requests{${role}, operation="AddActivityTask"}`]: total,
});
const frontend = 'svc_frontend_client_latency';
const start = 'svc_service="worker", operation="StartWorkflowExecution"';
const poll = `svc_service="worker", operation="PollForDecisionTask", ${at}`;

/** Of src/monitoring/rules/alerts/requests.ts. */
export const requestPlans: readonly Plan[] = [
  {
    alert: 'SvcFrontendLatency',
    at: 15,
    bad: buckets(frontend, start, '0.5', 50),
    good: buckets(frontend, start, '0.5', 100),
    edge: buckets(frontend, start, '0.5', 95),
    reset: restarted(frontend, start, '0.5'),
    labels: {},
    value: '950ms',
    more: [
      {
        shows: 'polls that wait for work',
        series: { ...buckets(frontend, poll, '0.5', 0), ...buckets(frontend, `${at}, ${start}`, '0.5', 100) },
        at: 15,
        fires: [],
      },
      {
        shows: 'one slow call in a quiet night',
        series: buckets(frontend, `${at}, ${start}`, '0.5', 50, 2),
        at: 15,
        fires: [],
      },
    ],
  },
  {
    alert: 'SvcRequestErrors',
    at: 15,
    bad: requests('0+12x20', '0+120x20'),
    good: requests('0+1x20', '0+120x20'),
    edge: requests('0+6x20', '0+120x20'),
    reset: requests('90000x8 0+1x20', '90000x8 0+120x20'),
    labels: { ...history, callee: 'matching' },
    value: '10%',
    more: [
      ...['frontend', 'history'].map((callee) => ({
        shows: `calls to the ${callee}`,
        series: {
          [`svc_${callee}_client_errors{${at}, svc_service="worker"}`]: '0+12x20',
          [`svc_${callee}_client_requests{${at}, svc_service="worker"}`]: '0+120x20',
        },
        at: 15,
        fires: [{ labels: { cluster: 'dc1', svc_service: 'worker', callee }, value: '10%' }],
      })),
      {
        shows: 'every second call of a quiet night',
        series: {
          [`svc_history_client_errors{${at}, ${role}}`]: '0+1x20',
          [`svc_history_client_requests{${at}, ${role}}`]: '0+2x20',
        },
        at: 15,
        fires: [],
      },
    ],
  },
];
