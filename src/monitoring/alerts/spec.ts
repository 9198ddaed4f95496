import type { Alert, RuleGroup } from '../alert.ts';
import type { Names } from '../names.ts';
import { replication } from './clusters.ts';
import { backups } from './recovery.ts';
import { requests } from './requests.ts';
import { availability, processes } from './roles.ts';
import { persistence, tasks } from './work.ts';
import { workflows } from './workflows.ts';

/** A condition of the spec's table. Everything else comes from the recommended alert with the same name. */
interface SpecCondition extends Pick<Alert, 'expr' | 'description'> {
  /** Set if the recommended alert is about something else: all instances, or labels that this condition does not have. */
  summary?: string;
  threshold?: number;
}

/** Several agents that report the same cluster-wide series are merged; no other label is removed. */
const once = (series: string) => `max without (instance, pod) (${series})`;
const rate = ({ m }: Names, name: `svc_${string}`, span = '5m') => `rate(${m(name)}[${span}])`;
const onHost = '{{ $labels.svc_service }} on {{ $labels.instance }}';
const backup =
  'Backup {{ $labels.backup }} ({{ $labels.backup_type }}) of {{ $labels.store }}/{{ $labels.database }}';

/** The 13 conditions of the spec (Limits), literally and in its order. */
const conditions: Readonly<Record<string, SpecCondition>> = {
  SvcServiceDown: {
    expr: ({ job }) => `up{${job('frontend')}} == 0`,
    summary: '{{ $labels.instance }} of {{ $labels.job }} is down.',
    description: 'Frontend {{ $labels.instance }} does not answer its scrape: up is {{ $value }}.',
  },
  SvcHighRestartRate: {
    expr: (names, threshold) => `${rate(names, 'svc_restarts')} > ${threshold}`,
    summary: `${onHost} restarts again and again.`,
    description: `${onHost} restarts {{ $value | printf "%.2f" }} times/s, above $threshold/s.`,
  },
  SvcPersistenceErrorRate: {
    expr: (names, threshold) => `${rate(names, 'svc_persistence_errors')} > ${threshold}`,
    description: `{{ $labels.operation }} of ${onHost} has {{ $value | humanize }} errors/s, above $threshold/s.`,
  },
  SvcPersistenceLatency: {
    expr: ({ m }, threshold) =>
      `histogram_quantile(0.99, rate(${m('svc_persistence_latency')}_bucket[5m])) > ${threshold}`,
    description: `The 99th percentile of {{ $labels.operation }} of ${onHost} is {{ $value | humanizeDuration }}, above $threshold.`,
  },
  SvcTaskListBacklogGrowth: {
    expr: (names, threshold) => `${rate(names, 'svc_matching_tasklist_backlog')} > ${threshold}`,
    description:
      'The backlog of task list {{ $labels.tasklist }} in domain {{ $labels.domain }} grows by {{ $value | humanize }} tasks/s, above $threshold/s.',
  },
  SvcWorkflowTimeouts: {
    expr: (names, threshold) => `${rate(names, 'svc_workflow_timeout')} > ${threshold}`,
    description:
      '{{ $labels.workflow_type }} of domain {{ $labels.domain }} has {{ $value | humanize }} timeouts/s, above $threshold/s.',
  },
  SvcHeapMemory: {
    expr: ({ m }, threshold) => `${m('svc_memory_heap')} > ${threshold}`,
    description: `The heap of ${onHost} is {{ $value | humanize }}B, above $threshold.`,
  },
  SvcGCPause: {
    expr: (names, threshold) => `${rate(names, 'svc_memory_gc_pause_ms')} > ${threshold}`,
    description: `${onHost} pauses for {{ $value | humanize }} ms/s, above $threshold ms/s.`,
  },
  SvcFrontendLatency: {
    expr: ({ m }, threshold) =>
      `histogram_quantile(0.95, rate(${m('svc_frontend_client_latency')}_bucket[5m])) > ${threshold}`,
    description:
      'The 95th percentile of {{ $labels.operation }}, measured by {{ $labels.instance }}, is {{ $value | humanizeDuration }}, above $threshold.',
  },
  SvcBackupAge: {
    expr: ({ m }, threshold) =>
      `time() - ${once(m('svc_backup_last_success_timestamp_seconds'))} > ${threshold}`,
    summary: `${backup} is too old.`,
    description: `${backup} last succeeded {{ $value | humanizeDuration }} ago, above $threshold.`,
  },
  SvcBackupFailures: {
    expr: (names, threshold) => `${once(rate(names, 'svc_backup_failures_total', '1h'))} > ${threshold}`,
    threshold: 0,
    summary: `${backup} failed.`,
    description: `${backup} has {{ $value | printf "%.4f" }} failures/s over 1h, above $threshold/s.`,
  },
  SvcReplicationLag: {
    expr: ({ m }, threshold) => `${once(m('svc_replication_lag_seconds'))} > ${threshold}`,
    description:
      '{{ $labels.target_cluster }} is {{ $value | humanizeDuration }} behind {{ $labels.source_cluster }}, above $threshold.',
  },
  SvcReplicationTaskFailures: {
    expr: (names, threshold) =>
      `sum without (instance, pod) (${rate(names, 'svc_replication_task_failures_total')}) > ${threshold}`,
    description:
      'From {{ $labels.source_cluster }} to {{ $labels.target_cluster }} {{ $value | humanize }} replication tasks/s fail, above $threshold/s.',
  },
};

const groups = [availability, processes, persistence, tasks, workflows, requests, backups, replication];
const recommended = groups.flatMap(({ alerts = [] }) => alerts);

/** The spec's conditions as alerts without `for`. */
export const specAlerts: readonly RuleGroup[] = [
  {
    name: 'svc-spec',
    alerts: Object.entries(conditions).map(([name, condition]) => {
      const { for: _, isState: __, ...usual } = recommended.find((alert) => alert.name === name)!;
      return { ...usual, ...condition };
    }),
  },
];
