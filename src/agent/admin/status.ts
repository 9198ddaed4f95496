import { statSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import type { Clock } from '../../core/ports.ts';
import type { Registry } from '../../core/registry/registry.ts';
import { toThousandths } from '../../core/text-formats.ts';
import type { BackupOptions } from '../../probes/backups/block.ts';
import type { ProbeReport, ProbeResult } from '../../probes/runner/probe-state.ts';
import type { LogFault } from '../../sources/logs/faults/file-faults.ts';
import type { LastErrors } from '../../sources/logs/metrics/last-errors.ts';
import type { ReadyConfig } from '../config/types.ts';
import { version } from '../installation.ts';
import {
  type BackupReport,
  type BoundListener,
  type Dated,
  type DomainReport,
  type EntriesReport,
  type Levels,
  type ListenerReport,
  type LogFaultReport,
  type LogFileReport,
  type ProbeStatus,
  type StatusFacts,
  type StatusReport,
  severeEntries,
} from '../report.ts';
import type { ReporterStatus } from '../reporters.ts';
import type { RoleSources } from '../role-sources.ts';
import type { State } from '../state/state.ts';
import type { ReadingsReport } from '../verdict/readings.ts';
import type { Judge } from '../verdict/verdict.ts';
import { familiesShown, measured, type ReadFamily, type SeriesRow } from './families.ts';
import type { Health } from './health.ts';

/**
 * The status of a probe with the last failures and the last results, newest first. Details and phases are long, and are left out
 * of the last results.
 */
type ProbeDebug = ProbeStatus & {
  failures: Dated<ProbeResult>[];
  history: Dated<Omit<ProbeResult, 'details' | 'phasesMs'>>[];
};

const timeOf = (ms: number) => new Date(ms).toISOString();

const dated = <T extends { atMs: number }>({ atMs, ...rest }: T): Dated<T> => ({ at: timeOf(atMs), ...rest });

const timeOrNone = (ms: number | undefined) => (ms === undefined ? undefined : timeOf(ms));

/** Copies field by field: V8 takes five times as long to copy the rest of an object with so many fields. */
export function probeStatus(report: ProbeReport): ProbeStatus {
  const { name, kind, target, state, flapping, consecutiveFailures, ageMs, skipped, last } = report;
  const { intervalMs, timeoutMs, isRunning, progress, sinceMs, failingSinceMs, nextRunMs } = report;
  return {
    name,
    kind,
    target,
    state,
    flapping,
    consecutiveFailures,
    ageMs,
    skipped,
    intervalMs,
    timeoutMs,
    isRunning,
    progress,
    since: timeOrNone(sinceMs),
    failingSince: timeOrNone(failingSinceMs),
    nextRun: timeOf(nextRunMs),
    last: last && resultStatus(last),
  };
}

function resultStatus(result: ProbeResult): Dated<ProbeResult> {
  const { atMs, ok, reason, msg, durationMs, phasesMs, failedChecks, details } = result;
  return { at: timeOf(atMs), ok, reason, msg, durationMs, phasesMs, failedChecks, details };
}

export function probeDebug(report: ProbeReport): ProbeDebug {
  const brief = ({ details: _, phasesMs: __, ...rest }: ProbeResult) => dated(rest);
  return {
    ...probeStatus(report),
    failures: report.failures.toReversed().map(dated),
    history: report.history.toReversed().map(brief),
  };
}

interface ReportDeps {
  registry: Registry;
  state: State;
  health: Health;
  clock: Clock;
  startedMs: number;
  reporters(): readonly ReporterStatus[];
  files(): readonly LogFileReport[];
  logFaults(): readonly LogFault[];
  lastErrors: Pick<LastErrors, 'all' | 'byService'>;
  listeners(): readonly BoundListener[];
  relays(): Iterable<RoleSources>;
  probes(): readonly ProbeReport[];
  /** Why the newest configuration was refused; undefined if it was accepted. */
  reloadError(): string | undefined;
  /** When a configuration was accepted after the start; undefined if none was. */
  changedMs(): number | undefined;
  readings(): ReadingsReport;
  judge: Judge['judge'];
}

/** The number of loggers in the status; all others are in the metrics. */
const mostLoggers = 20;
const sumOf = (levels: Levels) => Object.values(levels).reduce((sum, count) => sum + count, 0);

function entriesOf(rowsOf: ReadFamily, lastErrors: ReportDeps['lastErrors']): EntriesReport {
  const services = new Map<string, Record<string, number>>();
  const loggers = new Map<string, { service: string; logger: string; levels: Record<string, number> }>();
  const add = (levels: Record<string, number>, { labels: { level = '' }, value }: SeriesRow) => {
    levels[level] = (levels[level] ?? 0) + value;
  };
  for (const row of rowsOf('svc_log_entries_total')) {
    const { service } = row;
    const { logger = '' } = row.labels;
    const levels = services.get(service) ?? {};
    services.set(service, levels);
    add(levels, row);
    const key = `${service}\n${logger}`;
    const one = loggers.get(key) ?? { service, logger, levels: {} };
    loggers.set(key, one);
    add(one.levels, row);
  }
  const all = [...loggers.values()].filter(({ logger, levels }) => logger !== '' && sumOf(levels) > 0);
  all.sort((a, b) => severeEntries(b.levels) - severeEntries(a.levels) || sumOf(b.levels) - sumOf(a.levels));
  return {
    services: [...services].map(([service, levels]) => ({ service, levels })),
    loggers: all.slice(0, mostLoggers),
    loggerCount: all.length,
    lastErrors: lastErrors.all().map(dated),
    lastWords: lastErrors
      .byService()
      .map(({ service, entries }) => ({ service, entries: entries.map(dated) })),
  };
}

/** A time in seconds as text; undefined if there is none. */
const secondsTime = (seconds: number | undefined) =>
  seconds === undefined ? undefined : timeOf(seconds * 1e3);

function domainsOf(rowsOf: ReadFamily): DomainReport[] {
  const last = new Map(
    rowsOf('svc_domain_last_failover_timestamp_seconds').map(({ labels, value }) => [labels.domain, value]),
  );
  const active = new Map(
    rowsOf('svc_domain_active_cluster').map(({ labels }) => [labels.domain, labels.active_cluster]),
  );
  return rowsOf('svc_domain_failovers_total').map(({ labels: { domain = '' }, value }) => ({
    domain,
    activeCluster: active.get(domain),
    failovers: value,
    lastFailover: secondsTime(last.get(domain)),
  }));
}

function backupsOf(backups: readonly BackupOptions[], rowsOf: ReadFamily): BackupReport[] {
  if (backups.length === 0) return [];
  const of = (family: (typeof familiesShown)[number]) =>
    new Map(rowsOf(family).map(({ labels, value }) => [labels.backup, value] as const));
  const numbers = {
    success: of('svc_backup_last_success_timestamp_seconds'),
    failure: of('svc_backup_last_failure_timestamp_seconds'),
    point: of('svc_backup_recovery_point_timestamp_seconds'),
    bytes: of('svc_backup_last_size_bytes'),
    duration: of('svc_backup_last_duration_seconds'),
    integrity: of('svc_backup_integrity_ok'),
    offsite: of('svc_backup_offsite_last_success_timestamp_seconds'),
    retention: of('svc_backup_retention_compliant'),
  };
  const flag = (value: number | undefined) => (value === undefined ? undefined : value === 1);
  return backups.map(({ name, store, database, type, objectives }) => ({
    backup: name,
    store,
    database,
    type,
    rpoSeconds: objectives.rpoMs / 1e3,
    rtoSeconds: objectives.rtoMs / 1e3,
    lastSuccess: secondsTime(numbers.success.get(name)),
    lastFailure: secondsTime(numbers.failure.get(name)),
    recoveryPoint: secondsTime(numbers.point.get(name)),
    bytes: numbers.bytes.get(name),
    durationSeconds: numbers.duration.get(name),
    integrityOk: flag(numbers.integrity.get(name)),
    offsite: secondsTime(numbers.offsite.get(name)),
    retentionKept: flag(numbers.retention.get(name)),
  }));
}

function listenerReport({ certificate, ...rest }: BoundListener): ListenerReport {
  const served = certificate();
  if (!served) return rest;
  const { notAfterMs, refused } = served;
  const notAfter = new Date(notAfterMs).toISOString();
  return { ...rest, certificate: { notAfter, ...(refused !== undefined && { refused }) } };
}

/** The resident memory; bytes. Node reads it from a file: if the process has no descriptor left, this is the highest so far. */
function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return process.resourceUsage().maxRSS * 1024;
  }
}

function processOf(): StatusFacts['process'] {
  const { user, system } = process.cpuUsage();
  return {
    rssBytes: residentBytes(),
    heapBytes: getHeapStatistics().used_heap_size,
    cpuSeconds: toThousandths((user + system) / 1e6),
  };
}

/** The number of refusals that the status lists. */
const mostRefusals = 20;

function cardinalityOf(
  registry: Registry,
  limit: number,
): Pick<StatusFacts, 'series' | 'refused' | 'refusals' | 'conflicts'> {
  const { series, families, refusals, latest, conflicts } = registry.status();
  return {
    series: { total: series, limit, families },
    refused: refusals,
    refusals: latest
      .slice(-mostRefusals)
      .reverse()
      .map(({ family, reason, service, labels, atMs }) => ({
        family,
        reason,
        service,
        labels: labels.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(', '),
        at: timeOf(atMs),
      })),
    conflicts: conflicts.map(({ family, kind, claims }) => {
      const wanting = claims.map((claim) => `${claim.rawName} (${claim.kind})`).join(', ');
      return `${family} is ${kind ?? 'taken by a histogram or summary'}; wanted by ${wanting}`;
    }),
  };
}

/**
 * The faults of logs. A log that never had an entry may belong to a role that was never started here, so it is not reported as
 * gone.
 */
function logFaultsOf(faults: readonly LogFault[], { services }: EntriesReport): LogFaultReport[] {
  const hasLogged = new Set(services.filter(({ levels }) => sumOf(levels) > 0).map(({ service }) => service));
  return faults
    .filter(({ kind, services }) => kind !== 'gone' || services.some((service) => hasLogged.has(service)))
    .map(({ sinceMs, ...fault }) => ({ ...fault, since: timeOf(sinceMs) }));
}

/** The dynamic configuration file with its modification time. A file that replaces it has its own modification time, too. */
function dynamicOf(file: string) {
  try {
    return { file, changedAt: timeOf(statSync(file).mtimeMs) };
  } catch {
    // The file is on another host, or the agent is not permitted to read it.
    return { file };
  }
}

function factsOf({ config, files }: ReadyConfig, rowsOf: ReadFamily, deps: ReportDeps): StatusFacts {
  const { registry, state, health, clock } = deps;
  const { lastCommitMs, failures, ...stateStatus } = state.status();
  const relays = [...deps.relays()];
  const entries = entriesOf(rowsOf, deps.lastErrors);
  const lastReloadError = deps.reloadError();
  const changedMs = deps.changedMs();
  return {
    now: timeOf(clock.nowMs()),
    version,
    node: process.versions.node,
    instance: config.instance,
    roles: config.roles,
    health: health.health(),
    ready: health.ready().ok,
    startedAt: timeOf(deps.startedMs),
    config: {
      files,
      lastReloadSuccessful: lastReloadError === undefined,
      lastReloadError,
      ...(changedMs !== undefined && { changedAt: timeOf(changedMs) }),
      ...(config.dynamicConfig && { dynamic: dynamicOf(config.dynamicConfig) }),
    },
    state: {
      ...stateStatus,
      lastCommitAt: lastCommitMs === undefined ? undefined : timeOf(lastCommitMs),
      commitFailures: failures,
    },
    listeners: deps.listeners().map(listenerReport),
    process: processOf(),
    logs: deps.files(),
    logFaults: logFaultsOf(deps.logFaults(), entries),
    entries,
    scrapes: relays.flatMap(({ service, scrape }) => (scrape ? [{ service, ...scrape.status() }] : [])),
    statsd: relays.flatMap(({ service, statsd }) => (statsd ? [{ service, ...statsd.status() }] : [])),
    probes: deps.probes().map(probeStatus),
    restarts: Object.fromEntries(
      rowsOf('svc_role_restarts_total').map(({ service, value }) => [service, value]),
    ),
    domains: domainsOf(rowsOf),
    replication: rowsOf('svc_replication_lag_seconds').map(({ labels, value }) => ({
      source: labels.source_cluster ?? '',
      target: labels.target_cluster ?? '',
      lagSeconds: toThousandths(value),
    })),
    ...deps.readings(),
    backups: backupsOf(config.backups, rowsOf),
    certificates: rowsOf('svc_probe_tls_not_after_timestamp_seconds').map(({ labels, value }) => ({
      probe: labels.probe ?? '',
      notAfter: timeOf(value * 1e3),
    })),
    reporters: deps.reporters(),
    ...cardinalityOf(registry, config.limits.series),
    drops: rowsOf('svc_agent_dropped_total')
      .filter(({ value }) => value > 0)
      .map(({ labels: { component = '', reason = '' }, value }) => ({ component, reason, count: value })),
  };
}

/** The present `/api/status`. Durable numbers in it are the committed ones. */
export function statusReport(config: ReadyConfig, deps: ReportDeps): StatusReport {
  const view = deps.registry.view(({ relayed }) => !relayed, familiesShown);
  try {
    const facts = factsOf(config, measured(view), deps);
    return { ...deps.judge(facts, deps.clock.nowMs(), deps.clock.monotonicMs()), ...facts };
  } finally {
    view.release();
  }
}
