import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { Kind, SeriesView, View } from '../../core/model.ts';
import type { Registry } from '../../core/registry/registry.ts';
import { familiesRead, type Row, type Rows } from '../verdict/collected.ts';

/** The labels by name; `service` is the series' own service. */
export interface SeriesRow {
  labels: Readonly<Record<string, string>>;
  service: string;
  value: number;
}

/** The families that the status reads. Its view has no others: to view them all takes longer than to read these. */
export const familiesShown = [
  'svc_agent_dropped_total',
  'svc_backup_integrity_ok',
  'svc_backup_last_duration_seconds',
  'svc_backup_last_failure_timestamp_seconds',
  'svc_backup_last_size_bytes',
  'svc_backup_last_success_timestamp_seconds',
  'svc_backup_offsite_last_success_timestamp_seconds',
  'svc_backup_recovery_point_timestamp_seconds',
  'svc_backup_retention_compliant',
  'svc_domain_active_cluster',
  'svc_domain_failovers_total',
  'svc_domain_last_failover_timestamp_seconds',
  'svc_log_entries_total',
  'svc_probe_tls_not_after_timestamp_seconds',
  'svc_replication_lag_seconds',
  'svc_role_restarts_total',
] as const satisfies readonly AgentMetricName[];

/** Returns labels and value of each series of a family, as the registry has committed them. */
export type ReadFamily = (family: (typeof familiesShown)[number]) => SeriesRow[];

export function measured(view: View): ReadFamily {
  const families = new Map(view.families.map((family) => [family.name, family]));
  return (name) =>
    (families.get(name)?.series ?? []).map((one) => ({
      labels: Object.fromEntries(one.labels),
      service: one.service,
      value: view.numbers(one)[one.at] ?? 0,
    }));
}

/** Calls `use` with the series that the verdict is based on, with their present values in the registry. */
export function withReadings(registry: Registry, use: (rows: Rows) => void): void {
  const view = registry.view(undefined, familiesRead);
  try {
    const families = new Map(view.families.map((family) => [family.name, family]));
    use((name) => {
      const family = families.get(name);
      if (!family) return [];
      return family.series.map((series) => rowOf(view, family.kind, series));
    });
  } finally {
    view.release();
  }
}

function rowOf(view: View, kind: Kind, series: SeriesView): Row {
  const { service, at, bounds, hasSum, hasCount } = series;
  const labels = Object.fromEntries(series.labels);
  const numbers = view.numbers(series);
  if (kind !== 'histogram') return { service, labels, value: numbers[at] ?? 0 };
  const total = at + bounds.length;
  return {
    service,
    labels,
    // If the sender gives no count, the last bucket has all observations.
    value: numbers[hasCount ? total + 2 : total] ?? 0,
    buckets: bounds.map((bound, i) => [Number(bound), numbers[at + i] ?? 0] as const),
    ...(hasSum && { sum: numbers[total + 1] ?? 0 }),
  };
}
