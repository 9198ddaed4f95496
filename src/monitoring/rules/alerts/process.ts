import type { RuleGroup } from '../alert.ts';

const own = 'cluster, svc_service, instance';
/** A counter of ms, or, from a timer of that name, the seconds in its sum; a summary's quantiles are neither. */
const pauseMs =
  'rate(svc_memory_gc_pause_ms{quantile=""}[5m]) or 1000 * rate(svc_memory_gc_pause_ms_sum[5m])';
/** A process of its own counts collections from 0, so that a fall is a restart wherever nobody counts those. */
const restarts =
  `max by (${own}) (increase(svc_role_restarts_total[15m]))` +
  ` or max by (${own}) (resets(svc_memory_num_gc[15m]))`;

/** The processes of the roles. */
export const processes: RuleGroup = {
  name: 'svc-process',
  alerts: [
    {
      name: 'SvcHighRestartRate',
      severity: 'critical',
      expr: 'sum by (cluster, svc_service) (rate(svc_role_restarts_total[5m])) > $threshold',
      threshold: 0.1,
      for: '1m',
      summary: 'The instances of a role restart in masses.',
      description:
        'All {{ $labels.svc_service }} together restart {{ $value | printf "%.2f" }} times/s, above $threshold/s.',
      dashboard: 'process',
    },
    {
      name: 'SvcCrashLooping',
      severity: 'critical',
      expr: `(${restarts}) > $threshold`,
      threshold: 2,
      summary: 'A process restarts again and again.',
      description:
        '{{ $labels.svc_service }} on {{ $labels.instance }} restarted {{ $value | printf "%.0f" }} times in 15m, above $threshold.',
      dashboard: 'process',
    },
    {
      name: 'SvcHeapMemory',
      severity: 'warning',
      expr: `max by (${own}) (min_over_time(svc_memory_heap[10m])) > $threshold`,
      threshold: 8e9,
      for: '5m',
      summary: 'A process has a large heap, collected or not.',
      description:
        '{{ $labels.svc_service }} on {{ $labels.instance }} had a heap of at least {{ $value | humanize }}B for 10m, above $threshold bytes.',
      dashboard: 'process',
    },
    {
      name: 'SvcGCPause',
      severity: 'warning',
      expr: `max by (${own}) (${pauseMs}) > $threshold`,
      threshold: 100,
      for: '10m',
      summary: 'A process spends its time in garbage collection.',
      description:
        '{{ $labels.svc_service }} on {{ $labels.instance }} stands still for {{ $value | humanize }} ms/s, above $threshold ms/s.',
      dashboard: 'process',
    },
  ],
};
