import { slowByDesign } from '../../alerts/requests.ts';
import {
  at,
  column,
  type Dashboard,
  heatmap,
  type Panel,
  type PanelRow,
  percentiles,
  table,
  timeseries,
} from '../dashboard.ts';
import { instance, operation, type Queries, role, top } from '../queries.ts';

const latency = 'svc_frontend_client_latency';
const quick = `${latency}{${slowByDesign}}`;
const slow = `${latency}{${slowByDesign.replace('!~', '=~')}}`;

const burn = (
  { s }: Queries,
  title: string,
  alert: string,
  series: string,
  windows: readonly string[],
): Panel =>
  timeseries(
    `${title} over ${windows.join(' and ')}`,
    'Share of bad calls by the objective. Above the lines the error budget burns too fast. Needs the rules of pack slo.',
    'share',
    windows.map((window) => ({
      name: window,
      expr: `max by (cluster) (${s(`slo:${series}:ratio_rate${window}`)})`,
    })),
    { width: 6, limits: windows.map((window) => ({ alert, window })) },
  );

const trafficAndErrors = ({ rate, share }: Queries): PanelRow => ({
  title: 'Traffic and errors',
  panels: [
    timeseries(
      'Calls by operation',
      'Calls to the frontend; the 20 most frequent operations.',
      'requestsPerSecond',
      top(20, rate('svc_frontend_client_requests', 'operation')),
    ),
    timeseries(
      'Failed calls by operation',
      'Calls to the frontend that failed; the 20 most frequent operations.',
      'perSecond',
      top(20, rate('svc_frontend_client_errors', 'operation')),
    ),
    timeseries(
      'Share of failed calls',
      'Share of the calls that failed, by caller.',
      'share',
      share('svc_frontend_client_errors', 'svc_frontend_client_requests', 'svc_service'),
      { limits: at('SvcRequestErrors') },
    ),
  ],
});

const callers = ({ rate, quantile }: Queries): PanelRow => ({
  title: 'Callers',
  panels: [
    timeseries(
      'Calls by domain and caller',
      'Calls to the frontend; the ten callers with the most calls. A client that floods the frontend is at the top.',
      'requestsPerSecond',
      top(10, rate('svc_frontend_domain_requests', 'domain, caller')),
    ),
    timeseries(
      'Throttled calls by domain and caller',
      'Calls that the frontend refused because of a rate limit; the ten callers with the most refused calls.',
      'perSecond',
      top(10, rate('svc_frontend_domain_throttled', 'domain, caller')),
    ),
    timeseries(
      'Failed calls by domain and caller',
      'Calls to the frontend that failed; the ten callers with the most failed calls.',
      'perSecond',
      top(10, rate('svc_frontend_domain_errors', 'domain, caller')),
    ),
    timeseries(
      '95th percentile by domain and caller',
      'Calls to the frontend, long polls included; the ten slowest callers.',
      'seconds',
      top(10, quantile(0.95, 'svc_frontend_domain_latency', 'domain, caller')),
      { width: 24 },
    ),
  ],
});

const latencyOfQuickCalls = ({ distribution, quantile }: Queries): PanelRow => ({
  title: 'Latency without long polls and lists',
  panels: [
    timeseries(
      '95th percentile',
      'As the alert computes it: without long polls, lists, queries and histories.',
      'seconds',
      quantile(0.95, quick),
      { limits: at('SvcFrontendLatency') },
    ),
    timeseries(
      'Percentiles',
      '50%, 95% and 99% of the calls are faster than this.',
      'seconds',
      percentiles((q) => quantile(q, quick)),
    ),
    heatmap('Latency over time', 'Distribution of the calls over all chosen clusters.', distribution(quick), {
      width: 8,
    }),
    timeseries(
      '95th percentile by operation',
      'The 20 slowest operations.',
      'seconds',
      top(20, quantile(0.95, quick, 'operation')),
      { width: 12 },
    ),
    timeseries(
      'Polls, lists and histories: 95th percentile',
      'These calls wait for work or return much data, so that no limit applies. The 20 slowest operations.',
      'seconds',
      top(20, quantile(0.95, slow, 'operation')),
      { width: 12 },
    ),
  ],
});

const objectives = (queries: Queries): PanelRow => ({
  title: 'Objectives',
  panels: [
    burn(queries, 'Failed calls', 'SvcFrontendAvailabilityBurn', 'svc_frontend_errors', ['1h', '6h']),
    burn(queries, 'Failed calls', 'SvcFrontendAvailabilityBurn', 'svc_frontend_errors', ['1d', '3d']),
    burn(queries, 'Slow calls', 'SvcFrontendLatencyBurn', 'svc_frontend_slow', ['1h', '6h']),
    burn(queries, 'Slow calls', 'SvcFrontendLatencyBurn', 'svc_frontend_slow', ['1d', '3d']),
  ],
});

const operationsNow = ({ quantile, rate, share }: Queries): PanelRow => ({
  title: 'Operations now',
  panels: [
    table(
      'Operations',
      'Current numbers of each operation, by number of calls.',
      { cluster: 'Cluster', operation: 'Operation' },
      [
        column('Calls', 'requestsPerSecond', rate('svc_frontend_client_requests', 'operation')),
        column(
          'Failed',
          'share',
          share('svc_frontend_client_errors', 'svc_frontend_client_requests', 'operation'),
          { limits: at('SvcRequestErrors') },
        ),
        column('p50', 'seconds', quantile(0.5, latency, 'operation')),
        column('p95', 'seconds', quantile(0.95, latency, 'operation')),
      ],
      { sortBy: 'Calls' },
    ),
  ],
});

export const frontend: Dashboard = {
  name: 'frontend',
  title: 'Frontend',
  description: 'Traffic, errors and latency of the frontend as its callers see them.',
  choices: [role, instance, operation('svc_frontend_client_requests')],
  rows: (queries) => [
    trafficAndErrors(queries),
    callers(queries),
    latencyOfQuickCalls(queries),
    objectives(queries),
    operationsNow(queries),
  ],
};
