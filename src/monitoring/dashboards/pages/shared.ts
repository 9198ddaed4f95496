import { at, heatmap, type Panel, type PanelRow, percentiles, timeseries } from '../dashboard.ts';
import { type Queries, top } from '../queries.ts';

/** Calls to one role, as its callers see them: the last row of two dashboards. */
export function callRow(
  callee: 'history' | 'matching',
  { distribution, quantile, rate, share }: Queries,
): PanelRow {
  const prefix = `svc_${callee}_client`;
  return {
    title: `Calls to ${callee}`,
    panels: [
      timeseries(
        `Calls to ${callee} by operation`,
        `Calls to the ${callee} service by operation; the 20 most frequent.`,
        'requestsPerSecond',
        top(20, rate(`${prefix}_requests`, 'operation')),
      ),
      timeseries(
        `Failed calls to ${callee}`,
        'Calls that failed, by operation; the 20 most frequent.',
        'perSecond',
        top(20, rate(`${prefix}_errors`, 'operation')),
      ),
      timeseries(
        `Share of failed calls to ${callee}`,
        'Share of the calls that failed, by caller.',
        'share',
        share(`${prefix}_errors`, `${prefix}_requests`, 'svc_service'),
        { limits: at('SvcRequestErrors') },
      ),
      timeseries(
        `Latency of ${callee}`,
        'Percentiles over all operations, as the callers see them.',
        'seconds',
        percentiles((q) => quantile(q, `${prefix}_latency`)),
      ),
      timeseries(
        `95th percentile of ${callee} by operation`,
        'The 20 slowest operations.',
        'seconds',
        top(20, quantile(0.95, `${prefix}_latency`, 'operation')),
      ),
      heatmap(
        `Latency of ${callee} over time`,
        'Distribution of the calls over all chosen clusters.',
        distribution(`${prefix}_latency`),
        { width: 8 },
      ),
    ],
  };
}

/** The time for which certificates are still valid, on the overview and on the dashboard of the agent. */
export const certificates = ({ s }: Pick<Queries, 's'>): Panel =>
  timeseries(
    'Certificates',
    'Time until the certificate that each probe sees expires.',
    'duration',
    `min by (cluster, probe) (${s('svc_probe_tls_not_after_timestamp_seconds')}) - time()`,
    { limits: at('SvcCertificateExpiring') },
  );
