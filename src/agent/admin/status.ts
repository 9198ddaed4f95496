import type { AgentMetricName } from '../../core/agent-metrics.ts';
import type { Clock } from '../../core/ports.ts';
import type { HealthState } from '../../core/reasons.ts';
import type { Registry } from '../../core/registry.ts';
import type { ProbeReport, ProbeResult } from '../../probes/runner/probe-state.ts';
import type { ScrapeStatus } from '../../sources/scrape/scrape-status.ts';
import type { StatsdStatus } from '../../sources/statsd/source.ts';
import type { ReadyConfig } from '../config/types.ts';
import { version } from '../installation.ts';
import type { ReporterStatus } from '../reporters.ts';
import type { RoleSources } from '../role-pipeline.ts';
import type { State } from '../state/state.ts';
import { type Facts, type Verdict, verdictOf } from '../verdict.ts';

/** The spec's health response. */
export interface HealthAnswer {
  ok: boolean;
  msg: string;
}

/** The agent's own health; it never speaks of a role, a store, a log or a destination (CONTRACT, HTTP). */
export interface Health {
  /** Alive and at work: for liveness probes and `svc-agent healthcheck`. */
  health(): HealthAnswer;
  /** First positions are committed and answers are exact: for readiness probes. */
  ready(): HealthAnswer;
  enter(state: HealthState): void;
}

/** `degraded` says why the state cannot be written; the agent works on without it, so it is told, not failed. */
export function createHealth(degraded: () => string | undefined): Health {
  let state: HealthState = 'starting';
  return {
    health() {
      if (state === 'stopping') return { ok: false, msg: 'stopping' };
      const reason = degraded();
      return {
        ok: true,
        msg: reason ? `OK, but the state cannot be written (${reason})` : state === 'ready' ? 'OK' : state,
      };
    },
    ready: () => ({ ok: state === 'ready', msg: state === 'ready' ? 'OK' : state }),
    enter(next) {
      state = next;
    },
  };
}

/** What `/api/status`, the status page and `svc-agent status` show; all of it derived, none of it secret. */
export interface StatusReport {
  /** Whether everything is well, in one sentence, and what is wrong. */
  verdict: Verdict;
  /** When the report was made, RFC 3339. */
  now: string;
  version: string;
  node: string;
  instance: string;
  roles: readonly string[];
  health: { ok: boolean; msg: string };
  ready: boolean;
  startedAt: string;
  config: { files: readonly string[]; lastReloadSuccessful: boolean; lastReloadError?: string };
  state: {
    directory: string;
    degraded?: string;
    sequence: number;
    lastCommitAt?: string;
    commitFailures: number;
  };
  listeners: readonly { listener: string; address: string; tls: boolean }[];
  logs: readonly LogFileReport[];
  scrapes: readonly (ScrapeStatus & { service: string })[];
  statsd: readonly (StatsdStatus & { service: string })[];
  probes: readonly ProbeStatus[];
  /** Lag between two clusters, where it is known. */
  replication: readonly { source: string; target: string; lagSeconds: number }[];
  /** Earliest expiry among the certificates that a probe's target shows. */
  certificates: readonly { probe: string; notAfter: string }[];
  reporters: readonly ReporterStatus[];
  series: { total: number; families: readonly { family: string; series: number }[] };
  refused: readonly { family: string; reason: string; count: number }[];
  conflicts: readonly string[];
  drops: readonly { component: string; reason: string; count: number }[];
}

/** One file the agent follows. */
interface LogFileReport {
  path: string;
  services: readonly string[];
  offset: number;
  lagBytes: number;
  /** `following`, or why it is not read right now. */
  state: string;
}

type Dated<T extends { atMs: number }> = Omit<T, 'atMs'> & { at: string };

/** How a probe is doing, as `/probes` and the status show it. */
export type ProbeStatus = Omit<ProbeReport, 'sinceMs' | 'nextRunMs' | 'last' | 'history' | 'failures'> & {
  since?: string;
  nextRun: string;
  last?: Dated<ProbeResult>;
};

/** With the last results and the last failures, newest first. */
type ProbeDebug = ProbeStatus & { failures: Dated<ProbeResult>[]; history: Dated<ProbeResult>[] };

const timeOf = (ms: number) => new Date(ms).toISOString();

function dated({ atMs, ...rest }: ProbeResult): Dated<ProbeResult> {
  return { at: timeOf(atMs), ...rest };
}

export function probeStatus(report: ProbeReport): ProbeStatus {
  const { sinceMs, nextRunMs, last, history: _, failures: __, ...rest } = report;
  return {
    ...rest,
    since: sinceMs === undefined ? undefined : timeOf(sinceMs),
    nextRun: timeOf(nextRunMs),
    last: last && dated(last),
  };
}

export function probeDebug(report: ProbeReport): ProbeDebug {
  const newestFirst = (results: readonly ProbeResult[]) => results.toReversed().map(dated);
  return {
    ...probeStatus(report),
    failures: newestFirst(report.failures),
    history: newestFirst(report.history),
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
  listeners(): StatusReport['listeners'];
  relays(): Iterable<RoleSources>;
  probes(): readonly ProbeReport[];
  /** Why the newest configuration was not taken; undefined when it was. */
  reloadError(): string | undefined;
}

type Row = Readonly<Record<string, string>> & { value: number };

/** Labels and value of each series of some families that the agent measures, as the registry has committed them. */
function measured<F extends AgentMetricName>(registry: Registry, ...families: F[]): Record<F, Row[]> {
  const view = registry.view(({ relayed }) => !relayed);
  const rowsOf = (family: F) => {
    const series = view.families.find(({ name }) => name === family)?.series ?? [];
    return series.map(
      (one) => ({ ...Object.fromEntries(one.labels), value: view.numbers(one)[one.at] ?? 0 }) as Row,
    );
  };
  const rows = Object.fromEntries(families.map((family) => [family, rowsOf(family)]));
  view.release();
  return rows as Record<F, Row[]>;
}

/** `/api/status` as of now. Durable numbers in it are the committed ones. */
export function statusReport({ config, files }: ReadyConfig, deps: ReportDeps): StatusReport {
  const { registry, state, health, clock } = deps;
  const { lastCommitMs, failures, ...stateStatus } = state.status();
  const { series, families, refusals, conflicts } = registry.status();
  const relays = [...deps.relays()];
  const lastReloadError = deps.reloadError();
  const rows = measured(
    registry,
    'svc_replication_lag_seconds',
    'svc_probe_tls_not_after_timestamp_seconds',
    'svc_agent_dropped_total',
  );
  const facts: Facts = {
    now: timeOf(clock.nowMs()),
    version,
    node: process.versions.node,
    instance: config.instance,
    roles: config.roles,
    health: health.health(),
    ready: health.ready().ok,
    startedAt: timeOf(deps.startedMs),
    config: { files, lastReloadSuccessful: lastReloadError === undefined, lastReloadError },
    state: {
      ...stateStatus,
      lastCommitAt: lastCommitMs === undefined ? undefined : timeOf(lastCommitMs),
      commitFailures: failures,
    },
    listeners: deps.listeners(),
    logs: deps.files(),
    scrapes: relays.flatMap(({ service, scrape }) => (scrape ? [{ service, ...scrape.status() }] : [])),
    statsd: relays.flatMap(({ service, statsd }) => (statsd ? [{ service, ...statsd.status() }] : [])),
    probes: deps.probes().map(probeStatus),
    replication: rows.svc_replication_lag_seconds.map((row) => ({
      source: row.source_cluster ?? '',
      target: row.target_cluster ?? '',
      lagSeconds: row.value,
    })),
    certificates: rows.svc_probe_tls_not_after_timestamp_seconds.map((row) => ({
      probe: row.probe ?? '',
      notAfter: timeOf(row.value * 1e3),
    })),
    reporters: deps.reporters(),
    series: { total: series, families },
    refused: refusals,
    conflicts: conflicts.map(({ family, kind, claims }) => {
      const wanting = claims.map((claim) => `${claim.rawName} (${claim.kind})`).join(', ');
      return `${family} is ${kind ?? 'taken by a histogram or summary'}; wanted by ${wanting}`;
    }),
    drops: rows.svc_agent_dropped_total
      .filter(({ value }) => value > 0)
      .map((row) => ({ component: row.component ?? '', reason: row.reason ?? '', count: row.value })),
  };
  return { verdict: verdictOf(facts, clock.nowMs()), ...facts };
}
