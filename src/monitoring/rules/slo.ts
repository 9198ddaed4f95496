import type { Alert, Dashboard, RuleGroup } from './alert.ts';
import { slowByDesign } from './alerts/requests.ts';

/** One objective: the share of events that may be bad is 1 less `objective`. */
interface Objective {
  alert: Alert['name'];
  /** Level and metric of the recorded series. */
  series: string;
  objective: number;
  dashboard: Dashboard;
  what: string;
  /** The share of bad events over a window, absent where there is no traffic. */
  share(window: string): string;
}

const requests = (window: string) => `sum by (cluster) (rate(svc_frontend_client_requests[${window}]))`;
const latency = `svc_frontend_client_latency`;

const objectives: readonly Objective[] = [
  {
    alert: 'SvcFrontendAvailabilityBurn',
    series: 'slo:svc_frontend_errors',
    objective: 0.999,
    dashboard: 'frontend',
    what: 'requests to the frontend fail',
    share: (window) =>
      `(sum by (cluster) (rate(svc_frontend_client_errors[${window}])) or 0 * ${requests(window)}) / (${requests(window)} > 0)`,
  },
  {
    alert: 'SvcFrontendLatencyBurn',
    series: 'slo:svc_frontend_slow',
    objective: 0.95,
    dashboard: 'frontend',
    what: 'requests to the frontend take longer than 0.5 s',
    share: (window) => {
      const sum = (part: string, matchers: string) =>
        `sum by (cluster) (rate(${latency}_${part}{${matchers}}[${window}]))`;
      return `1 - ${sum('bucket', `le="0.5", ${slowByDesign}`)} / (${sum('count', slowByDesign)} > 0)`;
    },
  },
];

/** Windows and factors of Google's SRE workbook, Alerting on SLOs: what share of 30 days' budget is gone. */
const burns = [
  { severity: 'critical', for: '2m', long: '1h', short: '5m', factor: 14.4 },
  { severity: 'critical', for: '15m', long: '6h', short: '30m', factor: 6 },
  { severity: 'warning', for: '1h', long: '1d', short: '2h', factor: 3 },
  { severity: 'warning', for: '3h', long: '3d', short: '6h', factor: 1 },
] as const;
const windows = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'];
const leastRequestsPerSecond = 0.1;

const alertOf = (
  of: Objective,
  { severity, long, short, factor, ...rest }: (typeof burns)[number],
): Alert => {
  const above = (window: string) => `${of.series}:ratio_rate${window} > ${factor} * (1 - $threshold)`;
  return {
    name: of.alert,
    severity,
    expr: `${above(long)} and ${above(short)} and on (cluster) ${requests(short)} > ${leastRequestsPerSecond}`,
    threshold: of.objective,
    for: rest.for,
    labels: { window: long },
    summary: `Too many ${of.what}: the error budget burns ${factor} times too fast.`,
    description: `Over ${long} {{ $value | humanizePercentage }} of the ${of.what}, above ${factor} times the budget of 1 - $threshold.`,
    dashboard: of.dashboard,
  };
};

/** Availability and latency of the frontend: the shares of bad requests, and how fast they use up the budget. */
export const slos: readonly RuleGroup[] = objectives.map((of) => ({
  name: `svc-slo-${of.alert.replace(/^SvcFrontend|Burn$/g, '').toLowerCase()}`,
  records: windows.map((window) => ({ record: `${of.series}:ratio_rate${window}`, expr: of.share(window) })),
  alerts: burns.map((burn) => alertOf(of, burn)),
}));
