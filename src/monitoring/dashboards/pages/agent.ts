import { at, column, type Dashboard, type PanelRow, table, timeline, timeseries } from '../dashboard.ts';
import { instance, type Queries, top } from '../queries.ts';
import { certificates } from './shared.ts';

const state = ({ highest, job, moment }: Queries): PanelRow => ({
  title: 'State',
  panels: [
    timeline(
      'Agents',
      'Whether Prometheus can scrape each agent.',
      'up',
      highest(`up{${job('svc-agent')}}`, 'instance'),
      {
        width: 8,
        runbooks: ['SvcAgentDown', 'SvcAgentsRecovering'],
      },
    ),
    timeline(
      'Saved state',
      'Whether the agent can save its state. While it cannot, a crash loses counts.',
      'degraded',
      highest('svc_agent_state_degraded', 'instance'),
      { width: 8, runbooks: ['SvcAgentStateDegraded'] },
    ),
    timeline(
      'Configuration',
      'Whether the last reload succeeded. If not, the previous configuration stays in effect.',
      'taken',
      highest('svc_agent_config_last_reload_successful', 'instance'),
      { width: 8, runbooks: ['SvcAgentReloadFailed'] },
    ),
    table(
      'Running agents',
      'Agents that run now, and their versions.',
      { cluster: 'Cluster', instance: 'Instance', version: 'Version', node: 'Node.js' },
      [
        column('Running', 'count', highest('svc_agent_build_info', 'instance, version, node'), {
          state: 'yes',
        }),
      ],
      { width: 12, height: 8 },
    ),
    table(
      'Last successes',
      'When each agent last loaded its configuration, saved its state and delivered a report.',
      { cluster: 'Cluster', instance: 'Instance' },
      [
        column(
          'Configuration',
          'ago',
          moment('svc_agent_config_last_reload_success_timestamp_seconds', 'instance'),
        ),
        column('State saved', 'ago', moment('svc_agent_state_last_commit_timestamp_seconds', 'instance')),
        column('Reported', 'ago', moment('svc_agent_report_last_success_timestamp_seconds', 'instance')),
      ],
      { width: 12, height: 8 },
    ),
  ],
});

const verdict = ({ highest }: Queries): PanelRow => ({
  title: 'Verdict',
  panels: [
    timeline(
      'Incidents',
      'Problems that no other one explains, by kind and subject, as the agents see them.',
      'lasts',
      highest('svc_incident', 'cause, subject'),
      { width: 12, height: 8, runbooks: ['SvcIncident', 'SvcRoleExplained'] },
    ),
    timeline(
      'Maintenance',
      'Whether planned work is under way, by an announcement or by a window of the configuration.',
      'on',
      highest('svc_maintenance', 'instance'),
      { width: 12, height: 8, runbooks: ['SvcMaintenance'] },
    ),
  ],
});

const losses = ({ peak, rate, total }: Queries): PanelRow => ({
  title: 'Drops and refusals',
  panels: [
    timeseries(
      'Dropped',
      'Everything that the agents drop, by component and reason. Forbidden tags and values are removed by the cardinality rules and are not counted as a loss.',
      'perSecond',
      rate('svc_agent_dropped_total', 'component, reason'),
      { width: 12, limits: at('SvcAgentDropping') },
    ),
    timeseries(
      'Datagrams dropped by the kernel',
      'Datagrams that arrived while the receive buffer was full. Above 0: raise the buffer or send fewer datagrams.',
      'perSecond',
      rate('svc_agent_statsd_kernel_drops_total', 'instance'),
      { width: 12, limits: at('SvcAgentDropping') },
    ),
    timeseries(
      'Series',
      'Series by family. The largest families have lines of their own; other is the sum of all the rest.',
      'count',
      top(20, total('svc_agent_series', 'family'), peak('svc_agent_series', 'family')),
    ),
    timeseries(
      'Series refused',
      'Refused series by family and reason. After limit_metric, limit_total and limit_memory the family has one more series with overflow="true".',
      'perSecond',
      top(20, rate('svc_agent_series_refused_total', 'family, reason')),
    ),
    timeseries(
      'Failed saves',
      'Attempts to save the state that failed.',
      'perSecond',
      rate('svc_agent_state_commit_failures_total', 'instance'),
      { runbooks: ['SvcAgentStateDegraded'] },
    ),
  ],
});

const reports = ({ age, highest, rate }: Queries): PanelRow => ({
  title: 'Reports',
  panels: [
    timeseries(
      'Failed reports',
      'Reports that failed, by reason.',
      'perSecond',
      rate('svc_agent_report_failures_total', 'instance, reason'),
      { limits: at('SvcAgentReportFailing') },
    ),
    timeseries(
      'Time since the last report',
      'Time since the last successful report.',
      'duration',
      age('svc_agent_report_last_success_timestamp_seconds', 'instance'),
      { runbooks: ['SvcAgentReportFailing'] },
    ),
    timeseries(
      'Queue on disk',
      'Size of the data that waits to be sent.',
      'bytes',
      highest('svc_agent_queue_bytes', 'instance'),
    ),
    timeseries(
      'Oldest batch in the queue',
      'Age of the oldest batch in the queue. When the queue is full, the oldest batches are dropped.',
      'duration',
      `time() - ${highest('svc_agent_queue_oldest_timestamp_seconds', 'instance')}`,
      { width: 12 },
    ),
    timeseries(
      'Time since the last save',
      'Time since the state was last saved. Totals are saved before they are exposed, so exposed totals are as old as this.',
      'duration',
      `time() - ${highest('svc_agent_state_last_commit_timestamp_seconds', 'instance')}`,
      { width: 12 },
    ),
  ],
});

const probes = ({ age, rate, s }: Queries): PanelRow => ({
  title: 'Probes',
  panels: [
    timeseries(
      'Time since the last result',
      'Time since the last result of each probe.',
      'duration',
      age('svc_probe_last_run_timestamp_seconds', 'instance, probe'),
      { width: 12, runbooks: ['SvcProbeStale'] },
    ),
    timeseries(
      'Failed runs',
      'Runs of each probe that failed, by reason.',
      'perSecond',
      rate('svc_probe_failures_total', 'probe, reason'),
      { width: 12 },
    ),
    timeseries(
      'Skipped runs',
      'Skipped runs by reason. overlap: the previous run had not ended.',
      'perSecond',
      rate('svc_probe_skipped_total', 'probe, reason'),
      { width: 16 },
    ),
    certificates({ s }),
  ],
});

const resources = ({ highest, rate }: Queries): PanelRow => ({
  title: 'Resources',
  panels: [
    timeseries(
      'Processor time',
      'Share of one core that each agent uses.',
      'share',
      rate('svc_agent_process_cpu_seconds_total', 'instance'),
      { width: 6 },
    ),
    timeseries(
      'Memory',
      'Resident memory of each agent.',
      'bytes',
      highest('svc_agent_process_resident_memory_bytes', 'instance'),
      {
        width: 6,
      },
    ),
    timeseries(
      'Heap of Node.js',
      'Heap that Node.js uses.',
      'bytes',
      highest('svc_agent_nodejs_heap_size_used_bytes', 'instance'),
      { width: 6 },
    ),
    timeseries(
      'Event loop lag',
      'The latest value, and the 99th percentile of Node.js. A high lag delays scrapes.',
      'seconds',
      [
        { name: 'latest', expr: highest('svc_agent_event_loop_lag_seconds', 'instance') },
        { name: 'p99', expr: highest('svc_agent_nodejs_eventloop_lag_p99_seconds', 'instance') },
      ],
      { width: 6 },
    ),
  ],
});

export const agent: Dashboard = {
  name: 'agent',
  title: 'Agent',
  description: 'The agents themselves: their state, drops, reports, probes and resources.',
  choices: [instance],
  rows: (queries) => [
    state(queries),
    verdict(queries),
    losses(queries),
    reports(queries),
    probes(queries),
    resources(queries),
  ],
};
