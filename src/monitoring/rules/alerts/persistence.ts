import type { RuleGroup } from '../alert.ts';
import { increaseWithBirths } from '../born.ts';

const errors = increaseWithBirths('svc_persistence_errors', 'svc_persistence_requests', '5m');
const calls = 'sum by (cluster, svc_service) (rate(svc_persistence_requests[5m]))';
const byOperation = 'cluster, svc_service, operation';

/** Calls of the roles to their store. */
export const persistence: RuleGroup = {
  name: 'svc-persistence',
  alerts: [
    {
      name: 'SvcPersistenceErrorRate',
      severity: 'critical',
      expr: `sum by (cluster, svc_service) (${errors}) / 300 > $threshold`,
      threshold: 10,
      for: '2m',
      summary: 'Calls to the store fail.',
      description:
        'All {{ $labels.svc_service }} together have {{ $value | humanize }} persistence errors/s, above $threshold/s.',
      dashboard: 'persistence',
    },
    {
      name: 'SvcPersistenceErrorRatio',
      severity: 'warning',
      expr: `sum by (cluster, svc_service) (rate(svc_persistence_errors[5m])) / ${calls} > $threshold and ${calls} > 0.2`,
      threshold: 0.05,
      for: '5m',
      summary: 'A large share of the calls to the store fails.',
      description:
        '{{ $value | humanizePercentage }} of the persistence calls of {{ $labels.svc_service }} fail, above $threshold.',
      dashboard: 'persistence',
    },
    {
      name: 'SvcPersistenceLatency',
      severity: 'warning',
      expr:
        `histogram_quantile(0.99, sum by (${byOperation}, le) (rate(svc_persistence_latency_bucket[5m]))) > $threshold` +
        ` and sum by (${byOperation}) (rate(svc_persistence_latency_count[5m])) > 0.2`,
      threshold: 1,
      for: '5m',
      summary: 'Calls to the store are slow.',
      description:
        '{{ $labels.operation }} of {{ $labels.svc_service }}: the 99th percentile is {{ $value | humanizeDuration }}, above $threshold s.',
      dashboard: 'persistence',
    },
  ],
};
