import { getHeapStatistics } from 'node:v8';
import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { View } from '../../core/model.ts';
import type { Clock } from '../../core/ports.ts';
import type { Registry } from '../../core/registry.ts';
import { toThousandths } from '../../core/text-formats.ts';
import type { ProbeReport } from '../../probes/runner/probe-state.ts';
import type { LogFault } from '../../sources/logs/faults/file-faults.ts';
import type { BriefFacts, Levels, LogFaultReport, LogFileReport, StatusFacts } from '../report.ts';
import type { ReporterStatus } from '../reporters.ts';
import type { RoleSources } from '../role-sources.ts';
import type { State } from '../state/state.ts';

export interface BriefDeps {
  registry: Registry;
  state: Pick<State, 'status'>;
  clock: Clock;
  reporters(): readonly ReporterStatus[];
  files(): readonly LogFileReport[];
  logFaults(): readonly LogFault[];
  relays(): Iterable<RoleSources>;
  probes(): readonly ProbeReport[];
  /** Why the newest configuration was refused; undefined if it was accepted. */
  reloadError(): string | undefined;
}

export const timeOf = (ms: number) => new Date(ms).toISOString();

/** The labels by name; `service` is the series' own service. */
export interface SeriesRow {
  labels: Readonly<Record<string, string>>;
  service: string;
  value: number;
}

/** Returns labels and value of each series of a family that the agent measures, as the registry has committed them. */
export type ReadFamily = (family: AgentMetricName) => SeriesRow[];

export function measured(view: View): ReadFamily {
  const families = new Map(view.families.map((family) => [family.name, family]));
  return (name) =>
    (families.get(name)?.series ?? []).map((one) => ({
      labels: Object.fromEntries(one.labels),
      service: one.service,
      value: view.numbers(one)[one.at] ?? 0,
    }));
}

export const sumOf = (levels: Levels) => Object.values(levels).reduce((sum, count) => sum + count, 0);

/** The resident memory; bytes. Node reads it from a file: if the process has no descriptor left, this is the highest so far. */
function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

export function processOf(): StatusFacts['process'] {
  const { user, system } = process.cpuUsage();
  return {
    rssBytes: residentBytes(),
    heapBytes: getHeapStatistics().used_heap_size,
    cpuSeconds: toThousandths((user + system) / 1e6),
  };
}

/**
 * The faults of logs. A log that never had an entry may belong to a role that was never started here, so it is not reported as
 * gone.
 */
export function logFaultsOf(
  faults: readonly LogFault[],
  { services }: BriefFacts['entries'],
): LogFaultReport[] {
  const hasLogged = new Set(services.filter(({ levels }) => sumOf(levels) > 0).map(({ service }) => service));
  return faults
    .filter(({ kind, services }) => kind !== 'gone' || services.some((service) => hasLogged.has(service)))
    .map(({ sinceMs, ...fault }) => ({ ...fault, since: timeOf(sinceMs) }));
}

/** The number of log entries of each service, by level. */
function levelsOf(rowsOf: ReadFamily): BriefFacts['entries']['services'] {
  const services = new Map<string, Record<string, number>>();
  for (const { service, labels, value } of rowsOf('svc_log_entries_total')) {
    const levels = services.get(service) ?? {};
    services.set(service, levels);
    const { level = '' } = labels;
    levels[level] = (levels[level] ?? 0) + value;
  }
  return [...services].map(([service, levels]) => ({ service, levels }));
}

export const scrapesOf = (relays: readonly RoleSources[]): StatusFacts['scrapes'] =>
  relays.flatMap(({ service, scrape }) => (scrape ? [{ service, ...scrape.status() }] : []));

export const restartsOf = (rowsOf: ReadFamily): StatusFacts['restarts'] =>
  Object.fromEntries(rowsOf('svc_role_restarts_total').map(({ service, value }) => [service, value]));

export const replicationOf = (rowsOf: ReadFamily): StatusFacts['replication'] =>
  rowsOf('svc_replication_lag_seconds').map(({ labels, value }) => ({
    source: labels.source_cluster ?? '',
    target: labels.target_cluster ?? '',
    lagSeconds: toThousandths(value),
  }));

export const dropsOf = (rowsOf: ReadFamily): StatusFacts['drops'] =>
  rowsOf('svc_agent_dropped_total')
    .filter(({ value }) => value > 0)
    .map(({ labels: { component = '', reason = '' }, value }) => ({ component, reason, count: value }));

/** The families that the brief facts are read from. */
const familiesRead: readonly AgentMetricName[] = [
  'svc_log_entries_total',
  'svc_role_restarts_total',
  'svc_replication_lag_seconds',
  'svc_agent_dropped_total',
];

/** The present facts, without those that are costly. Durable numbers in them are the committed ones. */
export function briefFacts(deps: BriefDeps): BriefFacts {
  const { registry, state, clock } = deps;
  const view = registry.view(({ relayed }) => !relayed, familiesRead);
  try {
    const rowsOf = measured(view);
    const entries = { services: levelsOf(rowsOf) };
    return {
      now: timeOf(clock.nowMs()),
      process: processOf(),
      logs: deps.files(),
      logFaults: logFaultsOf(deps.logFaults(), entries),
      entries,
      scrapes: scrapesOf([...deps.relays()]),
      probes: deps.probes(),
      restarts: restartsOf(rowsOf),
      replication: replicationOf(rowsOf),
      reporters: deps.reporters(),
      series: { total: registry.seriesCount() },
      drops: dropsOf(rowsOf),
      state: state.status(),
      config: { lastReloadError: deps.reloadError() },
    };
  } finally {
    view.release();
  }
}
