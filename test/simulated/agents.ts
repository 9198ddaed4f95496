import { agentMetrics } from '../../src/core/agent-metrics.ts';
import type { Metric } from '../../src/core/catalog.ts';
import type { Simulated, Tags } from './series.ts';
import { combinations } from './service.ts';
import { bump, momentOf, wave } from './time.ts';

/** An agent: its cluster and host, and the other cluster that it knows. */
interface Agent {
  cluster: string;
  other: string;
  instance: string;
}

const roles = ['frontend', 'history', 'matching', 'worker'];
const stores: readonly Tags[] = [
  { store: 'main', kind: 'postgres', database: 'persistence' },
  { store: 'main', kind: 'postgres', database: 'visibility' },
];
const backups: readonly Tags[] = [
  { backup: 'main-full', store: 'main', database: 'persistence', backup_type: 'full' },
  { backup: 'main-log', store: 'main', database: 'persistence', backup_type: 'log' },
  { backup: 'main-visibility', store: 'main', database: 'visibility', backup_type: 'full' },
  { backup: 'settings', store: 'main', database: 'config', backup_type: 'config' },
];

/** The identities in a group of metrics, before the tags of each metric. */
const identities: Readonly<Record<string, (agent: Agent) => readonly Tags[]>> = {
  logs: () => roles.map((svc_service) => ({ svc_service })),
  roles: () => roles.map((svc_service) => ({ svc_service })),
  probes: () => ['health/frontend', 'store/main'].map((probe) => ({ probe })),
  stores: () => stores,
  domains: () => ['orders', 'billing'].map((domain) => ({ domain })),
  replication: ({ cluster, other }) => [{ source_cluster: other, target_cluster: cluster }],
  backups: () => backups,
  recovery: () => stores.map(({ store, database }) => ({ store: store!, database: database! })),
  archives: () => ['history', 'visibility'].map((archive) => ({ archive, scheme: 's3' })),
};

const usual: Readonly<Record<string, readonly string[]>> = {
  primary_cluster: ['dc1'],
  level: ['info', 'warn', 'error', 'fatal'],
  logger: ['shard-controller', 'task-processor'],
  operation: ['PersistenceUpdateWorkflowExecution'],
  state: ['active', 'idle'],
  check: ['archive_mode', 'wal_level', 'replica'],
  version: ['0.8'],
  node: ['v22.20.0'],
  result: ['success', 'failure'],
  to: ['up', 'down'],
  backup_type: ['full', 'log'],
  procedure: ['cluster-loss', 'database-corruption'],
  phase: ['copy', 'log', 'check'],
  archive: ['history', 'visibility'],
  family: ['svc_persistence_latency', 'svc_log_entries_total', 'other'],
  component: ['logs', 'push'],
  active_cluster: ['dc1', 'dc2'],
  cause: ['store_down', 'crash_loop'],
  subject: ['main', 'history'],
  svc_service: roles,
};
const specific: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  svc_agent_build_info: { version: ['1.0.0'] },
  svc_log_lines_dropped_total: { reason: ['invalid_json', 'too_long'] },
  svc_log_skipped_bytes_total: { reason: ['start_at_end', 'vanished'] },
  svc_role_health_failures_total: { reason: ['refused', 'too_slow'] },
  svc_probe_skipped_total: { reason: ['overlap'] },
  svc_store_failures_total: { reason: ['refused'] },
  svc_agent_series_refused_total: { reason: ['limit_metric'] },
  svc_agent_dropped_total: { reason: ['send_failed'] },
  svc_agent_report_failures_total: { reason: ['unreachable'] },
  svc_backup_integrity_ok: { level: ['checksum', 'full'] },
};

/** All series that an agent itself produces, and `up` of its target. */
export function agentSeries(agent: Agent): Simulated[] {
  const tags = { cluster: agent.cluster, job: 'svc-agent', instance: agent.instance };
  return [
    { name: 'up', tags, gauge: () => 1 },
    ...runtime(tags),
    ...agentMetrics.flatMap((metric) => metricSeries(metric, agent, tags)),
    ...roles.map((role) => ({
      name: 'svc_role_reporter_errors_total',
      tags: { ...tags, svc_service: role },
      perSecond: (at: number) => (role === 'frontend' && at < 3 ? 0.1 : 0),
    })),
  ];
}

const runtime = (tags: Tags): Simulated[] => [
  { name: 'svc_agent_process_cpu_seconds_total', tags, perSecond: (at) => 0.01 * wave(tags.instance!, at) },
  { name: 'svc_agent_process_resident_memory_bytes', tags, gauge: (at) => 5e7 * wave(tags.instance!, at) },
  { name: 'svc_agent_nodejs_heap_size_used_bytes', tags, gauge: (at) => 2e7 * wave(tags.instance!, at) },
  {
    name: 'svc_agent_nodejs_eventloop_lag_p99_seconds',
    tags,
    gauge: (at) => 0.012 * wave(tags.instance!, at),
  },
];

function metricSeries(metric: Metric, agent: Agent, target: Tags): Simulated[] {
  const identitiesOf = metric.tags.includes('remote_cluster')
    ? () => [{ remote_cluster: agent.other }]
    : (identities[metric.group] ?? (() => [{}]));
  return identitiesOf(agent).flatMap((identity) => {
    const own = metric.tags.filter((tag) => !(tag in identity));
    const of = (tag: string) => specific[metric.name]?.[tag] ?? usual[tag] ?? ['failed'];
    return combinations(own, of).map((more) => one(metric, agent, { ...target, ...identity, ...more }));
  });
}

function one({ name, kind, unit }: Metric, agent: Agent, tags: Tags): Simulated {
  const isIll = agent.cluster === 'dc1';
  if (kind === 'counter') return { name, tags, perSecond: (at) => rateOf(name, tags, isIll, at) };
  return {
    name,
    tags,
    gauge(at) {
      const special = gaugeOf(name, tags, isIll, at);
      if (special !== undefined) return Number.isNaN(special) ? undefined : special;
      if (unit === 'timestamp') return momentOf(at, 20);
      return unit === 'none' ? 1 : 0.02 * wave(JSON.stringify(tags), at);
    },
  };
}

function rateOf(name: string, tags: Tags, isIll: boolean, at: number): number {
  const trouble = isIll ? bump(at, 28, 44) : 0;
  const levels: Readonly<Record<string, number>> = {
    info: 9,
    warn: 0.4,
    error: 0.05 + 6 * trouble,
    fatal: 0,
  };
  if (tags.level === 'fatal' && tags.instance === 'dc1-a:9464' && tags.svc_service === 'history')
    return at > 24.7 && at < 25.1 ? 0.05 : 0;
  if (tags.level) return levels[tags.level]! * wave(JSON.stringify(tags), at);
  if (name === 'svc_log_bytes_total') return 2600 * wave(tags.svc_service!, at);
  if (name === 'svc_log_persistence_errors_total') return 0.02 + 4 * trouble;
  if (name === 'svc_log_skipped_bytes_total')
    return tags.reason === 'vanished' && isIll ? 900 * bump(at, 50, 54) : 0;
  if (name === 'svc_role_restarts_total')
    return tags.instance === 'dc1-a:9464' && tags.svc_service === 'history' && at > 24.9 && at < 25.2
      ? 0.05
      : 0;
  if (name === 'svc_backup_runs_total') return tags.result === 'success' ? 0.0003 : isIll ? 0.0006 : 0;
  if (name === 'svc_backup_failures_total') return isIll && tags.backup === 'main-full' ? 0.0006 : 0;
  if (name === 'svc_domain_failovers_total')
    return tags.domain === 'billing' && at > 44.9 && at < 45.2 ? 0.05 : 0;
  return isIll ? 0.2 * trouble : 0;
}

/** The value of a gauge; undefined for the usual value, NaN for no sample. */
function gaugeOf(name: string, tags: Tags, isIll: boolean, at: number): number | undefined {
  const active = tags.domain === 'billing' && at >= 45 ? 'dc2' : 'dc1';
  const isFull = tags.backup === 'main-full';
  const special: Readonly<Record<string, number | undefined>> = {
    svc_role_up:
      isIll && tags.svc_service === 'history' && tags.instance === 'dc1-a:9464' && at > 24.5 && at < 27
        ? 0
        : 1,
    svc_store_up: isIll && tags.database === 'visibility' && at > 34 && at < 38 ? 0 : 1,
    svc_store_read_only: 0,
    svc_store_connections: tags.state === 'active' ? 30 + (isIll ? 60 * bump(at, 28, 44) : 0) : 8,
    svc_store_connections_max: 100,
    svc_store_check_ok: isIll && tags.check === 'replica' ? 0 : 1,
    svc_store_wal_oldest_unarchived_timestamp_seconds: momentOf(at, isIll ? 20 + 500 * bump(at, 10, 58) : 15),
    svc_cluster_up: isIll && at > 46 && at < 48 ? 0 : 1,
    svc_clusters: 2,
    svc_domain_clusters: 2,
    svc_domain_active_cluster: tags.active_cluster === active ? 1 : Number.NaN,
    svc_domain_last_failover_timestamp_seconds: momentOf(tags.domain === 'billing' && at >= 45 ? 45 : -3000),
    svc_domain_failover_version: tags.domain === 'billing' && at >= 45 ? 12 : 1,
    svc_domain_retention_seconds: 604_800,
    svc_archival_unarchived_workflows: isIll ? 1200 * bump(at, 40, 58) : 0,
    svc_archival_due_workflows: 5200,
    svc_archival_next_deletion_timestamp_seconds: momentOf(at + 90),
    svc_domain_archival_enabled: tags.domain === 'billing' ? 0 : 1,
    svc_replication_lag_seconds: 4 + (isIll ? 480 * bump(at, 36, 58) : 0),
    svc_backup_last_success_timestamp_seconds: momentOf(isFull && isIll ? -1700 : -200),
    svc_backup_last_failure_timestamp_seconds: isFull && isIll ? momentOf(-30) : momentOf(-9000),
    svc_backup_offsite_last_success_timestamp_seconds: momentOf(isFull && isIll ? -1700 : -190),
    svc_backup_recovery_point_timestamp_seconds: momentOf(tags.backup_type === 'log' ? at - 2 : -200),
    svc_backup_last_size_bytes: 4.2e10,
    svc_backup_last_duration_seconds: 1500,
    svc_recovery_ready: isIll ? 0 : 1,
    svc_rpo_objective_seconds: tags.backup_type === 'log' ? 300 : 86_400,
    svc_rto_objective_seconds: tags.backup_type === 'log' ? 1800 : 14_400,
    svc_restore_drill_last_success_timestamp_seconds: momentOf(-20_000),
    svc_restore_drill_last_duration_seconds: 5400,
    svc_recovery_proven: isIll ? 0 : 1,
    svc_recovery_rehearsal_last_success_timestamp_seconds: momentOf(-9000),
    svc_recovery_rehearsal_duration_seconds: { copy: 700, log: 1900, check: 20 }[tags.phase ?? ''] ?? 0,
    svc_probe_tls_not_after_timestamp_seconds: momentOf(0, isIll ? -800_000 : -6_000_000),
    svc_incident: isIll && tags.cause === 'store_down' ? 1 : Number.NaN,
    svc_telemetry_truth_ratio: 0.6,
    svc_maintenance: 0,
    svc_agent_series: 400,
    svc_agent_state_degraded: 0,
    svc_agent_queue_bytes: isIll ? 1e6 * bump(at, 28, 50) : 0,
    svc_log_lag_bytes: 2000 * wave(JSON.stringify(tags), at),
  };
  return special[name];
}
