import { at } from '../alerts.ts';
import { instance } from '../choices.ts';
import { age, highest, moment, peak, rate, top, total } from '../expr.ts';
import type { Dashboard, Row } from '../model.ts';
import { column, table, timeline, timeseries } from '../panels.ts';
import { reports } from './agent-reports.ts';

const state: Row = {
  title: 'Are the agents well',
  panels: [
    timeline(
      'Agents',
      'Whether Prometheus reaches each agent.',
      'up',
      highest('up{job="svc-agent"}', 'instance'),
      {
        width: 8,
        runbooks: ['SvcAgentDown'],
      },
    ),
    timeline(
      'Totals',
      'Whether totals can be saved. While they cannot, a crash would take some back.',
      'degraded',
      highest('svc_agent_state_degraded', 'instance'),
      { width: 8, runbooks: ['SvcAgentStateDegraded'] },
    ),
    timeline(
      'Configuration',
      'Whether the last changed configuration was taken; if not, the one before goes on.',
      'taken',
      highest('svc_agent_config_last_reload_successful', 'instance'),
      { width: 8, runbooks: ['SvcAgentReloadFailed'] },
    ),
    table(
      'Agents now',
      'Every running agent and its versions.',
      { cluster: 'Cluster', instance: 'Instance', version: 'Version', node: 'Node.js' },
      [
        column('Running', 'count', highest('svc_agent_build_info', 'instance, version, node'), {
          state: 'yes',
        }),
      ],
      { width: 12, height: 8 },
    ),
    table(
      'Last done',
      'When each agent last took a configuration, saved its totals and delivered a report.',
      { cluster: 'Cluster', instance: 'Instance' },
      [
        column(
          'Configuration',
          'ago',
          moment('svc_agent_config_last_reload_success_timestamp_seconds', 'instance'),
        ),
        column('Totals saved', 'ago', moment('svc_agent_state_last_commit_timestamp_seconds', 'instance')),
        column('Reported', 'ago', moment('svc_agent_report_last_success_timestamp_seconds', 'instance')),
      ],
      { width: 12, height: 8 },
    ),
  ],
};

const losses: Row = {
  title: 'What is lost or refused',
  panels: [
    timeseries(
      'Dropped',
      'Everything that is dropped, by component and reason. Forbidden tags and values are taken away by the rules on cardinality and are no loss.',
      'perSecond',
      rate('svc_agent_dropped_total', 'component, reason'),
      { width: 12, limits: at('SvcAgentDropping') },
    ),
    timeseries(
      'Datagrams dropped by the kernel',
      'The receive buffer was full. More than 0: a larger buffer, or fewer datagrams.',
      'perSecond',
      rate('svc_agent_statsd_kernel_drops_total', 'instance'),
      { width: 12, limits: at('SvcAgentDropping') },
    ),
    timeseries(
      'Series held',
      'By family: the largest ones, the rest as other.',
      'count',
      top(20, total('svc_agent_series', 'family'), peak('svc_agent_series', 'family')),
    ),
    timeseries(
      'Series refused',
      'By family and reason. limit_metric and limit_total: the family goes on as one series with overflow="true".',
      'perSecond',
      top(20, rate('svc_agent_series_refused_total', 'family, reason')),
    ),
    timeseries(
      'Totals that could not be saved',
      'Attempts that failed.',
      'perSecond',
      rate('svc_agent_state_commit_failures_total', 'instance'),
      { runbooks: ['SvcAgentStateDegraded'] },
    ),
  ],
};

const probes: Row = {
  title: 'Probes',
  panels: [
    timeseries(
      'Since the last result',
      'How long ago each probe last had a result.',
      'duration',
      age('svc_probe_last_run_timestamp_seconds', 'instance, probe'),
      { runbooks: ['SvcProbeStale'] },
    ),
    timeseries(
      'Failed runs',
      'Runs of each probe that failed, by reason.',
      'perSecond',
      rate('svc_probe_failures_total', 'probe, reason'),
    ),
    timeseries(
      'Runs left out',
      'By reason. overlap: the run before had not ended.',
      'perSecond',
      rate('svc_probe_skipped_total', 'probe, reason'),
    ),
    timeseries(
      'Certificates',
      'How long the certificate that each probe meets is still good.',
      'duration',
      'min by (cluster, probe) (svc_probe_tls_not_after_timestamp_seconds) - time()',
      { limits: at('SvcCertificateExpiring') },
    ),
  ],
};

const use: Row = {
  title: 'What the agents take',
  panels: [
    timeseries(
      'Processor time',
      'Share of one core.',
      'share',
      rate('svc_agent_process_cpu_seconds_total', 'instance'),
      { width: 6 },
    ),
    timeseries(
      'Memory',
      'Resident set.',
      'bytes',
      highest('svc_agent_process_resident_memory_bytes', 'instance'),
      {
        width: 6,
      },
    ),
    timeseries(
      'Heap of Node.js',
      'Heap in use.',
      'bytes',
      highest('svc_agent_nodejs_heap_size_used_bytes', 'instance'),
      { width: 6 },
    ),
    timeseries(
      'Delay of the event loop',
      'The latest look, and the 99th percentile that Node.js keeps. Much of it: answers come late.',
      'seconds',
      [
        { name: 'latest', expr: highest('svc_agent_event_loop_lag_seconds', 'instance') },
        { name: 'p99', expr: highest('svc_agent_nodejs_eventloop_lag_p99_seconds', 'instance') },
      ],
      { width: 6 },
    ),
  ],
};

export const agent: Dashboard = {
  name: 'agent',
  title: 'Agent',
  description: 'The agents themselves: whether they are well, what they drop, whether their reports arrive.',
  choices: [instance],
  rows: [state, losses, reports, probes, use],
};
