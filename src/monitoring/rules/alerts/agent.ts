import type { RuleGroup } from '../alert.ts';
import { increaseWithBirths } from '../born.ts';

const own = 'cluster, instance';
const fatal = increaseWithBirths('svc_log_entries_total{level="fatal"}', 'svc_log_bytes_total', '10m');
/** What a rule of the spec takes away is no loss. */
const drops = 'rate(svc_agent_dropped_total{reason!~"forbidden_tag|forbidden_value"}[5m])';
/** Datagrams that the kernel dropped, named as the agent's own drops are. */
const kernelDrops =
  'label_replace(label_replace(sum by (cluster, instance) (rate(svc_agent_statsd_kernel_drops_total[5m])),' +
  ' "component", "kernel", "", ""), "reason", "buffer_full", "", "")';

/** What only the agent knows, of logs, of its probes and of itself. */
export const agent: RuleGroup = {
  name: 'svc-agent',
  alerts: [
    {
      name: 'SvcFatalLogEntry',
      severity: 'critical',
      expr: `sum by (cluster, svc_service, instance) (${fatal}) > $threshold`,
      threshold: 0,
      summary: 'A role logged an error that shuts it down.',
      description:
        '{{ $labels.svc_service }} beside {{ $labels.instance }} logged {{ $value | printf "%.0f" }} fatal entries in 10m.',
      dashboard: 'logs',
    },
    {
      name: 'SvcLogLag',
      severity: 'warning',
      expr: 'max by (cluster, svc_service, instance) (min_over_time(svc_log_lag_bytes[5m])) > $threshold',
      threshold: 67_108_864,
      for: '5m',
      summary: 'The agent cannot keep up with a log.',
      description:
        'Of the logs of {{ $labels.svc_service }} beside {{ $labels.instance }} at least {{ $value | humanize1024 }}B have waited for 5m, above $threshold bytes.',
      dashboard: 'logs',
    },
    {
      name: 'SvcLogBytesLost',
      severity: 'warning',
      expr:
        'sum by (cluster, svc_service, instance, reason)' +
        ' (increase(svc_log_skipped_bytes_total{reason!="start_at_end"}[10m])) > $threshold',
      threshold: 0,
      summary: 'Log lines were gone before they were read.',
      description:
        'Of the logs of {{ $labels.svc_service }} beside {{ $labels.instance }} {{ $value | humanize1024 }}B were not read in 10m ({{ $labels.reason }}).',
      dashboard: 'logs',
    },
    {
      name: 'SvcProbeStale',
      severity: 'warning',
      // Gauges of a probe go when it has had no result for three of its intervals, its counters only with the probe.
      expr:
        `sum by (${own}, probe) (increase(svc_probe_skipped_total[5m]))` +
        ` unless on (${own}, probe) svc_probe_last_run_timestamp_seconds`,
      for: '10m',
      summary: 'A probe of a running agent has no results.',
      description:
        'Probe {{ $labels.probe }} of {{ $labels.instance }} has had no result for three of its intervals; {{ $value | printf "%.0f" }} runs were left out in 5m.',
      dashboard: 'agent',
    },
    {
      name: 'SvcCertificateExpiring',
      severity: 'warning',
      expr: 'min by (cluster, probe) (svc_probe_tls_not_after_timestamp_seconds) - time() < $threshold',
      threshold: 1_209_600,
      for: '1h',
      summary: 'A certificate of the service expires soon.',
      description:
        'A certificate that probe {{ $labels.probe }} meets expires in {{ $value | humanizeDuration }}.',
      dashboard: 'overview',
    },
    {
      name: 'SvcAgentDropping',
      severity: 'warning',
      expr: `(sum by (${own}, component, reason) (${drops})` + ` or ${kernelDrops}) > $threshold`,
      threshold: 0,
      for: '15m',
      summary: 'The agent drops data.',
      description:
        'The agent {{ $labels.instance }} drops {{ $value | printf "%.3f" }} items/s ({{ $labels.component }}, {{ $labels.reason }}).',
      dashboard: 'agent',
    },
    {
      name: 'SvcAgentStateDegraded',
      severity: 'warning',
      expr: `max by (${own}) (svc_agent_state_degraded) == 1`,
      for: '5m',
      summary: 'The agent cannot save its totals.',
      description:
        'The agent {{ $labels.instance }} counts in memory only: svc_agent_state_degraded is {{ $value }}.',
      dashboard: 'agent',
    },
    {
      name: 'SvcAgentReloadFailed',
      severity: 'warning',
      expr: `max by (${own}) (svc_agent_config_last_reload_successful) == 0`,
      for: '5m',
      summary: 'The agent refused its changed configuration.',
      description:
        'The agent {{ $labels.instance }} runs on an older configuration: svc_agent_config_last_reload_successful is {{ $value }}.',
      dashboard: 'agent',
    },
    {
      name: 'SvcAgentReportFailing',
      severity: 'warning',
      expr: `sum by (${own}, reason) (rate(svc_agent_report_failures_total[5m])) > $threshold`,
      threshold: 0,
      for: '15m',
      summary: 'The reports of an agent do not arrive.',
      description:
        'Of the reports of {{ $labels.instance }} {{ $value | printf "%.3f" }}/s fail ({{ $labels.reason }}).',
      dashboard: 'agent',
    },
  ],
};
