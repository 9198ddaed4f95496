import { fires, type Plan, type Series, silent } from './case.ts';
import { buckets, restarted } from './work.ts';

const role = 'svc_service="history"';
const history = { svc_service: 'history' };
const at = 'cluster="dc1", instance="a"';
const requests = (errors: string, total: string): Series => ({
  [`svc_matching_client_errors{${role}, operation="AddActivityTask"}`]: errors,
  [`svc_matching_client_requests{${role}, operation="AddActivityTask"}`]: total,
});
const frontend = 'svc_frontend_client_latency';
const start = 'svc_service="worker", operation="StartWorkflowExecution"';
const poll = `svc_service="worker", operation="PollForDecisionTask", ${at}`;
/** The series of history about the requests that it served, and the series of its callers about their requests. */
const served = (
  own: { requests: string; errors?: string },
  callers: { requests: string; errors: string },
): Series => ({
  [`svc_served_requests{${at}, ${role}, operation="StartWorkflowExecution"}`]: own.requests,
  ...(own.errors && {
    [`svc_served_errors{${at}, ${role}, operation="StartWorkflowExecution"}`]: own.errors,
  }),
  [`svc_history_client_requests{${at}, svc_service="frontend"}`]: callers.requests,
  [`svc_history_client_errors{${at}, svc_service="frontend"}`]: callers.errors,
});
const byCallee = (value: string) => [{ labels: { cluster: 'dc1', callee: 'history' }, value }];
/** The cases in which the callee counts its own faults, so that only these faults count. */
const told: Pick<Plan, 'silent' | 'more'> = {
  silent: {
    // These numbers are from a recording: 90 and 85 answers to workers that were late, 989 starts of workflows that had started
    // already, and no failure.
    'answers that a caller counts as errors': {
      ...served({ requests: '0+3000x20' }, { requests: '0+3000x20', errors: '0+989x20' }),
      [`svc_history_client_errors{${at}, svc_service="frontend", operation="RespondActivityTaskCompleted"}`]:
        '0+90x20',
      [`svc_history_client_errors{${at}, svc_service="frontend", operation="RespondDecisionTaskCompleted"}`]:
        '0+85x20',
    },
    'few faults that the callee counts': served(
      { requests: '0+120x20', errors: '0+6x20' },
      { requests: '0+120x20', errors: '0+60x20' },
    ),
    'polls that workers cancel': {
      [`svc_served_requests{${at}, svc_service="matching", operation="PollForDecisionTask"}`]: '0+120x20',
      [`svc_served_errors{${at}, svc_service="matching", operation="PollForDecisionTask"}`]: '0+60x20',
      [`svc_matching_client_requests{${at}, svc_service="frontend"}`]: '0+120x20',
      [`svc_matching_client_errors{${at}, svc_service="frontend"}`]: '0+60x20',
    },
    'every second request in a quiet night': served(
      { requests: '0+2x20', errors: '0+1x20' },
      { requests: '0+2x20', errors: '0+1x20' },
    ),
  },
  more: [
    fires(
      'faults that the callee counts',
      byCallee('10%'),
      served({ requests: '0+120x20', errors: '0+12x20' }, { requests: '0+120x20', errors: '0+60x20' }),
    ),
    fires('a callee whose callers are not scraped', byCallee('10%'), {
      [`svc_served_requests{${at}, ${role}, operation="Do"}`]: '0+120x20',
      [`svc_served_errors{${at}, ${role}, operation="Do"}`]: '0+12x20',
    }),
    fires(
      'a callee that half of the requests do not reach',
      [{ labels: { cluster: 'dc1', svc_service: 'frontend', callee: 'history' }, value: '50%' }],
      served({ requests: '0+59x20' }, { requests: '0+120x20', errors: '0+60x20' }),
    ),
  ],
};
/** The plans for alerts on requests between roles: src/monitoring/alerts/requests.ts. */
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
    silent: {
      'polls that wait for work': {
        ...buckets(frontend, poll, '0.5', 0),
        ...buckets(frontend, `${at}, ${start}`, '0.5', 100),
      },
      'one slow call in a quiet night': buckets(frontend, `${at}, ${start}`, '0.5', 50, 2),
    },
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
    silent: told.silent!,
    more: [
      ...told.more!,
      ...['frontend', 'history', 'matching'].flatMap((callee) => {
        const calls = (errors: string, total: string): Series => ({
          [`svc_${callee}_client_errors{${at}, svc_service="worker"}`]: errors,
          [`svc_${callee}_client_requests{${at}, svc_service="worker"}`]: total,
        });
        const fires = (shows: string, series: Series, value: string) => ({
          ...{ shows, series },
          fires: [{ labels: { cluster: 'dc1', svc_service: 'worker', callee }, value }],
        });
        return [
          fires(`calls to the ${callee}`, calls('0+12x20', '0+120x20'), '10%'),
          fires(
            `calls to the ${callee} of which some series are missing`,
            calls('0+60x20', '0+30x20'),
            '100%',
          ),
          silent(`few errors of the ${callee}`, calls('0+1x20', '0+120x20')),
          silent(`every second call to the ${callee} in a quiet night`, calls('0+1x20', '0+2x20')),
        ];
      }),
    ],
  },
];
