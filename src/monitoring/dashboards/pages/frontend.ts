import { slowByDesign } from '../../rules/alerts/requests.ts';
import { at } from '../alerts.ts';
import { instance, operation, role } from '../choices.ts';
import { distribution, quantile, rate, share, top } from '../expr.ts';
import type { Dashboard, Panel } from '../model.ts';
import { column, heatmap, percentiles, table, timeseries } from '../panels.ts';

const latency = 'svc_frontend_client_latency';
const quick = `${latency}{${slowByDesign}}`;
const slow = `${latency}{${slowByDesign.replace('!~', '=~')}}`;

const burn = (title: string, alert: string, series: string, windows: readonly string[]): Panel =>
  timeseries(
    `${title} over ${windows.join(' and ')}`,
    `Share of bad calls as the objective counts them. The lines are where the error budget burns too fast. Needs the rules of the pack slo.`,
    'share',
    windows.map((window) => ({
      name: window,
      expr: `max by (cluster) (slo:${series}:ratio_rate${window})`,
    })),
    { width: 6, limits: windows.map((window) => ({ alert, window })) },
  );

export const frontend: Dashboard = {
  name: 'frontend',
  title: 'Frontend',
  description: 'Calls to the frontend as its callers see them: how many, how many fail, how long they take.',
  choices: [role, instance, operation('svc_frontend_client_requests')],
  rows: [
    {
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
          'Share of the calls that failed, by who called.',
          'share',
          share('svc_frontend_client_errors', 'svc_frontend_client_requests', 'svc_service'),
          { limits: at('SvcRequestErrors') },
        ),
      ],
    },
    {
      title: 'Latency, what is slow by design left out',
      panels: [
        timeseries(
          '95th percentile',
          'As the alert looks at it: polls, lists, queries and histories are left out.',
          'seconds',
          quantile(0.95, quick),
          { limits: at('SvcFrontendLatency') },
        ),
        timeseries(
          'Percentiles',
          'How far the slowest calls are from the usual one.',
          'seconds',
          percentiles((q) => quantile(q, quick)),
        ),
        heatmap(
          'Latency over time',
          'How many calls took how long, over all chosen clusters.',
          distribution(quick),
          {
            width: 8,
          },
        ),
        timeseries(
          '95th percentile by operation',
          'The 20 slowest operations.',
          'seconds',
          top(20, quantile(0.95, quick, 'operation')),
          { width: 12 },
        ),
        timeseries(
          'Polls, lists and histories: 95th percentile',
          'These wait for work, or are as slow as what they ask for: no limit applies. The 20 slowest.',
          'seconds',
          top(20, quantile(0.95, slow, 'operation')),
          { width: 12 },
        ),
      ],
    },
    {
      title: 'Objectives',
      panels: [
        burn('Failed calls', 'SvcFrontendAvailabilityBurn', 'svc_frontend_errors', ['1h', '6h']),
        burn('Failed calls', 'SvcFrontendAvailabilityBurn', 'svc_frontend_errors', ['1d', '3d']),
        burn('Slow calls', 'SvcFrontendLatencyBurn', 'svc_frontend_slow', ['1h', '6h']),
        burn('Slow calls', 'SvcFrontendLatencyBurn', 'svc_frontend_slow', ['1d', '3d']),
      ],
    },
    {
      title: 'Operations now',
      panels: [
        table(
          'Operations',
          'Each operation now; the greatest number of calls first.',
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
    },
  ],
};
