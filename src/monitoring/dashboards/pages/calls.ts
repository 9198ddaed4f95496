import { at } from '../alerts.ts';
import { distribution, quantile, rate, share, top } from '../expr.ts';
import type { Panel } from '../model.ts';
import { heatmap, percentiles, timeseries } from '../panels.ts';

/** What there is to see of the calls to one role, as its callers see them. */
export function callPanels(callee: 'history' | 'matching'): readonly Panel[] {
  const prefix = `svc_${callee}_client`;
  return [
    timeseries(
      `Calls to ${callee}`,
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
      'Share of the calls that failed, by who called.',
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
      'How many calls took how long, over all chosen clusters.',
      distribution(`${prefix}_latency`),
      { width: 8 },
    ),
  ];
}
