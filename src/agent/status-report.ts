import type { Registry } from '../core/registry.ts';
import type { ProbeReport } from '../probes/runner/report.ts';
import { probeStatus } from './admin/probes.ts';
import type { LogFileReport, StatusReport } from './admin/report.ts';
import type { ReadyConfig } from './config/loaded.ts';
import type { Health } from './health.ts';
import type { Relay } from './relay.ts';
import type { State } from './state/state.ts';
import { version } from './version.ts';

export interface ReportDeps {
  registry: Registry;
  state: State;
  health: Health;
  startedMs: number;
  files(): readonly LogFileReport[];
  listeners(): StatusReport['listeners'];
  relays(): Iterable<Relay>;
  probes(): readonly ProbeReport[];
  /** Why the newest configuration was not taken; undefined when it was. */
  reloadError(): string | undefined;
}

/** Drops that happened, by component and reason, as the registry has committed them. */
function dropsOf(registry: Registry): StatusReport['drops'] {
  const view = registry.view(({ service, relayed }) => service === '' && !relayed);
  const family = view.families.find(({ name }) => name === 'svc_agent_dropped_total');
  const rows = (family?.series ?? []).map((series) => {
    const labels = Object.fromEntries(series.labels);
    return {
      component: labels.component ?? '',
      reason: labels.reason ?? '',
      count: view.numbers(series)[series.at] ?? 0,
    };
  });
  view.release();
  return rows.filter(({ count }) => count > 0);
}

/** `/api/status` as of now. Durable numbers in it are the committed ones. */
export function statusReport({ config, files }: ReadyConfig, deps: ReportDeps): StatusReport {
  const { registry, state, health } = deps;
  const { lastCommitMs, failures, ...stateStatus } = state.status();
  const { series, families, refusals, conflicts } = registry.status();
  const relays = [...deps.relays()];
  const lastReloadError = deps.reloadError();
  return {
    version,
    node: process.versions.node,
    instance: config.instance,
    roles: config.roles,
    health: health.health(),
    ready: health.ready().ok,
    startedAt: new Date(deps.startedMs).toISOString(),
    config: { files, lastReloadSuccessful: lastReloadError === undefined, lastReloadError },
    state: {
      ...stateStatus,
      lastCommitAt: lastCommitMs === undefined ? undefined : new Date(lastCommitMs).toISOString(),
      commitFailures: failures,
    },
    listeners: deps.listeners(),
    logs: deps.files(),
    scrapes: relays.flatMap(({ service, scrape }) => (scrape ? [{ service, ...scrape.status() }] : [])),
    statsd: relays.flatMap(({ service, statsd }) => (statsd ? [{ service, ...statsd.status() }] : [])),
    probes: deps.probes().map(probeStatus),
    series: { total: series, families },
    refused: refusals,
    conflicts: conflicts.map(({ family, kind, claims }) => {
      const wanting = claims.map((claim) => `${claim.rawName} (${claim.kind})`).join(', ');
      return `${family} is ${kind ?? 'taken by a histogram or summary'}; wanted by ${wanting}`;
    }),
    drops: dropsOf(registry),
  };
}
