import type { Alert, DashboardName, RuleGroup } from '../alert.ts';
import { type Names, site } from '../names.ts';
import { slowByDesign } from './requests.ts';

/** One objective. The share of events that may be bad is 1 minus `objective`. */
interface Objective {
  alert: Alert['name'];
  /** The level and metric of the recorded series. */
  series: string;
  objective: number;
  dashboard: DashboardName;
  /** The bad events, as a subject and a verb. */
  bad: string;
  /** The share of bad events over a window; absent if there is no traffic. */
  share(names: Names, window: string): string;
}

const requests = ({ m }: Names, window: string) =>
  `sum by (${site}) (rate(${m('svc_frontend_client_requests')}[${window}]))`;

const objectives: readonly Objective[] = [
  {
    alert: 'SvcFrontendAvailabilityBurn',
    series: 'slo:svc_frontend_errors',
    objective: 0.999,
    dashboard: 'frontend',
    bad: 'requests to the frontend failed',
    share(names, window) {
      const errors = `sum by (${site}) (rate(${names.m('svc_frontend_client_errors')}[${window}]))`;
      return `(${errors} or 0 * ${requests(names, window)}) / (${requests(names, window)} > 0)`;
    },
  },
  {
    alert: 'SvcFrontendLatencyBurn',
    series: 'slo:svc_frontend_slow',
    objective: 0.95,
    dashboard: 'frontend',
    bad: 'requests to the frontend took longer than 0.5s',
    share({ m }, window) {
      const sum = (part: string, matchers: string) =>
        `sum by (${site}) (rate(${m('svc_frontend_client_latency')}_${part}{${matchers}}[${window}]))`;
      return `1 - ${sum('bucket', `le="0.5", ${slowByDesign}`)} / (${sum('count', slowByDesign)} > 0)`;
    },
  },
];

/** Windows and factors of Google's SRE workbook, Alerting on SLOs, for a budget of 30 days. */
const burns = [
  { severity: 'critical', for: '2m', long: '1h', short: '5m', factor: 14.4 },
  { severity: 'critical', for: '15m', long: '6h', short: '30m', factor: 6 },
  { severity: 'warning', for: '1h', long: '1d', short: '2h', factor: 3 },
  { severity: 'warning', for: '3h', long: '3d', short: '6h', factor: 1 },
] as const;
const windows = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'];
const leastRequestsPerSecond = 0.1;

/** How fast the budget is used, compared with the rate at which it would last for its 30 days. */
const paceOf = (factor: number): string =>
  factor === 1 ? 'faster than allowed' : `${factor} times as fast as allowed`;

const alertOf = (
  of: Objective,
  { severity, long, short, factor, ...rest }: (typeof burns)[number],
): Alert => ({
  name: of.alert,
  severity,
  expr(names, objective) {
    const above = (window: string) => `${of.series}:ratio_rate${window} > ${factor} * (1 - ${objective})`;
    return [
      above(long),
      `and ${above(short)}`,
      `and on (${site}) ${requests(names, short)} > ${leastRequestsPerSecond}`,
    ].join('\n');
  },
  threshold: of.objective,
  unit: 'share',
  // The rounding makes 14.4 * (1 - 0.999) equal 0.0144.
  drawn: (objective) => Number((factor * (1 - objective)).toPrecision(12)),
  for: rest.for,
  labels: { window: long },
  summary: `Too many ${of.bad} in {{ $labels.cluster }}: the error budget is used up ${paceOf(factor)}.`,
  description: `{{ $value | humanizePercentage }} of the ${of.bad} in ${long}; the objective is $threshold, so that the error budget is used up ${paceOf(factor)}.`,
  firstSteps:
    'Find the operations that fail or are slow, and since when; undo the last change, or follow the alerts of the roles.',
  dashboard: of.dashboard,
});

/** Availability and latency of the frontend: the shares of bad requests, and how fast they use up the budget. */
export const slos: readonly RuleGroup[] = objectives.map((of) => ({
  name: `svc-slo-${of.alert.replace(/^SvcFrontend|Burn$/g, '').toLowerCase()}`,
  records: windows.map((window) => ({
    record: `${of.series}:ratio_rate${window}`,
    expr: (names) => of.share(names, window),
  })),
  alerts: burns.map((burn) => alertOf(of, burn)),
}));
