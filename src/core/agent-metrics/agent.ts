import { group } from './group.ts';

export const agent = group('agent', [], {
  svc_agent_build_info: [
    'gauge',
    'none',
    'Always 1; the labels are the versions of the agent and of Node.',
    ['version', 'node'],
  ],
  svc_agent_config_last_reload_successful: [
    'gauge',
    'none',
    'Whether the last configuration was taken: 1 or 0.',
  ],
  svc_agent_config_last_reload_success_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When a configuration was last taken.',
  ],
  svc_agent_event_loop_lag_seconds: ['gauge', 'seconds', 'Delay of the event loop.'],
  svc_agent_series: [
    'gauge',
    'none',
    'Series held, by family: the 20 largest, the rest as other.',
    ['family'],
  ],
  svc_agent_series_refused_total: ['counter', 'none', 'Series refused.', ['family', 'reason']],
  svc_agent_dropped_total: [
    'counter',
    'none',
    'Everything dropped, by component and reason.',
    ['component', 'reason'],
  ],
  svc_agent_state_degraded: ['gauge', 'none', 'Whether totals cannot be saved at the moment: 1 or 0.'],
  svc_agent_state_last_commit_timestamp_seconds: ['gauge', 'timestamp', 'When the state was last saved.'],
  svc_agent_state_commit_failures_total: ['counter', 'none', 'Attempts to save the state that failed.'],
  svc_agent_queue_bytes: ['gauge', 'bytes', 'Bytes that wait in the disk queue.'],
  svc_agent_queue_oldest_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When the oldest waiting batch was queued.',
  ],
  svc_agent_report_last_success_timestamp_seconds: [
    'gauge',
    'timestamp',
    'When a report was last delivered.',
  ],
  svc_agent_report_failures_total: ['counter', 'none', 'Reports that failed.', ['reason']],
  svc_agent_statsd_kernel_drops_total: [
    'counter',
    'none',
    'Datagrams the kernel dropped because its buffer was full.',
  ],
});
