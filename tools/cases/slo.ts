import type { Plan, Series } from './plan.ts';

const worker = 'svc_service="worker", operation="StartWorkflowExecution"';
const at = 'cluster="dc1", instance="a"';
const latency = 'svc_frontend_client_latency';
const minutes = 400;

const failing = (errors: string, requests: string, labels = worker): Series => ({
  [`svc_frontend_client_errors{${labels}}`]: errors,
  [`svc_frontend_client_requests{${labels}}`]: requests,
});
const slow = (fast: string, all: string, labels = worker): Series => ({
  [`${latency}_bucket{${labels}, le="0.5"}`]: fast,
  [`${latency}_bucket{${labels}, le="+Inf"}`]: all,
  [`${latency}_count{${labels}}`]: all,
  [`svc_frontend_client_requests{${labels}}`]: all,
});
const every = (perMinute: number) => `0+${perMinute}x${minutes}`;

/**
 * Long window, when its alert must fire, when a burst of five minutes has left the short one, and, of 6000 requests a minute, how many fail or are fast enough: above
 * its threshold and below that of the shorter window, then exactly on it.
 */
const burns = [
  {
    window: '1h',
    overAt: 13,
    at: 10,
    bad: { failed: 180, fast: 600, values: ['3%', '90%'] },
    edge: { failed: 86.4, fast: 1680 },
  },
  {
    window: '6h',
    overAt: 50,
    at: 30,
    bad: { failed: 60, fast: 3000, values: ['1%', '50%'] },
    edge: { failed: 36, fast: 4200 },
  },
  {
    window: '1d',
    overAt: 150,
    at: 75,
    bad: { failed: 30, fast: 4800, values: ['0.5%', '20%'] },
    edge: { failed: 18, fast: 5100 },
  },
  {
    window: '3d',
    overAt: 380,
    at: 200,
    bad: { failed: 12, fast: 5400, values: ['0.2%', '10%'] },
    edge: { failed: 6, fast: 5700 },
  },
] as const;

const availability = burns.map(
  (burn): Plan => ({
    alert: 'SvcFrontendAvailabilityBurn',
    ruleLabels: { window: burn.window },
    at: burn.at,
    bad: failing(every(burn.bad.failed), every(6000)),
    good: failing(every(1), every(6000)),
    edge: failing(every(burn.edge.failed), every(6000)),
    reset: failing('900000x5 0+1x400', '900000x5 0+6000x400'),
    labels: {},
    value: burn.bad.values[0],
    ending: { afterMinutes: 400 },
    more: [
      {
        shows: 'what is over burns no longer',
        series: failing('0+6000x5 30000x400', every(6000), `${at}, ${worker}`),
        at: burn.overAt,
        fires: [],
      },
      {
        shows: 'every request of a quiet night',
        series: failing(every(3), every(3), `${at}, ${worker}`),
        at: burn.at,
        fires: [],
      },
    ],
  }),
);

const latencies = burns.map(
  (burn): Plan => ({
    alert: 'SvcFrontendLatencyBurn',
    ruleLabels: { window: burn.window },
    at: burn.at,
    bad: slow(every(burn.bad.fast), every(6000)),
    good: slow(every(5990), every(6000)),
    edge: slow(every(burn.edge.fast), every(6000)),
    reset: slow('900000x5 0+6000x400', '900000x5 0+6000x400'),
    labels: {},
    value: burn.bad.values[1],
    ending: { afterMinutes: 400 },
    more: [
      {
        shows: 'what is over burns no longer',
        series: slow('0x5 6000+6000x400', every(6000), `${at}, ${worker}`),
        at: burn.overAt,
        fires: [],
      },
      {
        shows: 'every request of a quiet night',
        series: slow(every(0), every(3), `${at}, ${worker}`),
        at: burn.at,
        fires: [],
      },
      {
        shows: 'polls that wait for work',
        series: slow(every(0), every(6000), `${at}, svc_service="worker", operation="PollForDecisionTask"`),
        at: burn.at,
        fires: [],
      },
    ],
  }),
);

const [fast] = availability;

export const sloPlans: readonly Plan[] = [
  {
    ...fast!,
    more: [
      ...fast!.more!,
      {
        shows: 'a spike of three minutes in an hour',
        series: failing('0x60 180 360 540', every(6000), `${at}, ${worker}`),
        at: 63,
        fires: [],
      },
    ],
  },
  ...availability.slice(1),
  ...latencies,
];
