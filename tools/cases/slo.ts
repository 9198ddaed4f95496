import { type Plan, type Series, silent } from './case.ts';

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
 * For each alert: the long window, the minute at which it must fire, the minute at which a burst of five minutes has left the
 * short window, and how many of 6000 requests a minute fail or are fast enough: first numbers above the threshold of the alert
 * and below the threshold of the shorter window, then numbers exactly on the threshold of the alert.
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

/** One objective: its series as a function of the bad or fast events per minute, and its own cases. */
interface Objective {
  alert: string;
  measured(burn: (typeof burns)[number]): Pick<Plan, 'bad' | 'good' | 'edge' | 'value'>;
  reset: Series;
  over: Series;
  quietNight: Series;
  more?: readonly { shows: string; series: Series }[];
}

const plans = ({ alert, measured, reset, over, quietNight, more = [] }: Objective) =>
  burns.map((burn): Plan => {
    return {
      ...{ alert, ruleLabels: { window: burn.window }, at: burn.at, reset, labels: {} },
      ...measured(burn),
      ending: { afterMinutes: 400 },
      more: [
        silent('what is over burns no longer', over, burn.overAt),
        silent('every request of a quiet night', quietNight),
        ...more.map(({ shows, series }) => silent(shows, series)),
      ],
    };
  });

const availability = plans({
  alert: 'SvcFrontendAvailabilityBurn',
  measured: ({ bad, edge }) => ({
    bad: failing(every(bad.failed), every(6000)),
    good: failing(every(1), every(6000)),
    edge: failing(every(edge.failed), every(6000)),
    value: bad.values[0],
  }),
  reset: failing('900000x5 0+1x400', '900000x5 0+6000x400'),
  over: failing('0+6000x5 30000x400', every(6000), `${at}, ${worker}`),
  quietNight: failing(every(3), every(3), `${at}, ${worker}`),
});

const latencies = plans({
  alert: 'SvcFrontendLatencyBurn',
  measured: ({ bad, edge }) => ({
    bad: slow(every(bad.fast), every(6000)),
    good: slow(every(5990), every(6000)),
    edge: slow(every(edge.fast), every(6000)),
    value: bad.values[1],
  }),
  reset: slow('900000x5 0+6000x400', '900000x5 0+6000x400'),
  over: slow('0x5 6000+6000x400', every(6000), `${at}, ${worker}`),
  quietNight: slow(every(0), every(3), `${at}, ${worker}`),
  more: [
    {
      shows: 'polls that wait for work',
      series: slow(every(0), every(6000), `${at}, svc_service="worker", operation="PollForDecisionTask"`),
    },
  ],
});

const [fast] = availability;

export const sloPlans: readonly Plan[] = [
  {
    ...fast!,
    more: [
      ...fast!.more!,
      silent(
        'a spike of three minutes in an hour',
        failing('0x60 180 360 540', every(6000), `${at}, ${worker}`),
        63,
      ),
    ],
  },
  ...availability.slice(1),
  ...latencies,
];
