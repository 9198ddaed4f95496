import { randomUUID } from 'node:crypto';
import type { ReadSecret } from '../core/access.ts';
import { parseAddress } from '../core/address.ts';
import type { Clock, Drops, Gather, Log, Readings } from '../core/ports.ts';
import type { Registry } from '../core/registry.ts';
import type { Vocabulary } from '../core/vocabulary.ts';
import { planProbes } from '../probes/plan.ts';
import type { ProbeReport } from '../probes/runner/probe-state.ts';
import { createRunner, type Runner } from '../probes/runner/runner.ts';
import { readVocabularies } from '../sources/vocabularies.ts';
import { createHistory } from './admin/history.ts';
import { createLive } from './admin/live.ts';
import type { StatusReport } from './admin/report.ts';
import { type Health, statusReport, withReadings } from './admin/status.ts';
import type { AgentConfig, ReadyConfig, ServiceConfig } from './config/types.ts';
import { dryRun } from './dry-run.ts';
import { bindEndpoints, type Endpoints, type EndpointsDeps } from './endpoints.ts';
import { createGather } from './gather.ts';
import { shippedFolder } from './installation.ts';
import { type Intakes, registrySettings } from './intakes.ts';
import { createLogPipeline } from './log-pipeline.ts';
import type { Prepare, Prepared } from './reload.ts';
import { createReporters } from './reporters.ts';
import { createRolePipeline } from './role-pipeline.ts';
import { createRoles, type Roles } from './role-restarts.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { State, StateSection } from './state/state.ts';
import { tracing } from './tracing.ts';
import { createServiceReadings } from './verdict/readings.ts';
import { createJudge, type Judge } from './verdict/verdict.ts';

/** Whether any source of the service reports restarts. */
const isWatched = ({ selected, logs, health, scrape }: ServiceConfig): boolean =>
  selected && Boolean(logs || health || scrape);

interface PipelineDeps extends Pick<EndpointsDeps, 'listeners'> {
  registry: Registry;
  state: State;
  self: SelfMetrics;
  health: Health;
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
  log: Log;
  /** Why the newest configuration was refused; undefined if it was accepted. */
  reloadError(): string | undefined;
}

/** Everything that a configuration describes, from the sources through the registry to the endpoints. */
export interface Pipeline {
  /** Throws if a part cannot start; `stop` then ends the parts that did. */
  start(config: ReadyConfig): Promise<void>;
  /**
   * Builds everything of another configuration that can fail, beside what runs. Throws, with nothing changed, what
   * that throws. The parts are swapped in order.
   */
  prepare(config: ReadyConfig): readonly Prepare[];
  /** Ends every part; the state is committed by the caller. */
  stop(): Promise<void>;
}

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { registry, state, self, clock } = deps;
  const startedMs = clock.nowMs();
  const mark = randomUUID();
  let current: ReadyConfig;
  const roles = createRoles({ ...deps, log: deps.log.named('roles') });
  state.section('roles').assign(roles.durable);
  let vocabularies: Promise<readonly Vocabulary[]> | undefined;
  const rolePipeline = createRolePipeline({
    ...deps,
    vocabularies() {
      vocabularies ??= readVocabularies(shippedFolder('vocabularies'));
      return vocabularies;
    },
    ownListeners: () => endpoints.addresses().flatMap(({ address }) => parseAddress(address) ?? []),
    mark,
    onKernelDrops(more) {
      self.statsdKernelDrops.inc(more);
      deps.drops.count('statsd', 'buffer_full', more);
    },
    onPage: roles.scraped,
  });
  const probing = createProbePipeline({
    ...deps,
    section: state.section('probes'),
    roles,
    readings: {
      values: (family) =>
        [...rolePipeline.all()].flatMap(({ scrape }) => [...(scrape?.values(family) ?? [])]),
    },
  });
  const counting = createLogPipeline({
    ...deps,
    logsSection: state.section('log-positions'),
    processEvents: roles,
    opened(intakes, config) {
      roles.configure(
        config.services.filter(isWatched).map(({ name }) => name),
        intakes.events,
      );
      probing.configure(config, intakes);
    },
  });
  const reporters = createReporters(deps);
  let changedMs: number | undefined;
  const readings = createServiceReadings();
  const judge = createJudge(() => current.config.maintenance.windows);
  state.section('incidents').assign(judge.durable);
  const gather: Gather = createGather({
    registry,
    state,
    self,
    relaySelf: counting.relaySelf,
    switched: () => counting.switched,
    refresh: (request) => rolePipeline.refresh(request),
  });

  const report = () => {
    const made = statusReport(current, {
      ...deps,
      startedMs,
      changedMs: () => changedMs,
      readings: readings.report,
      judge: judge.judge,
      files: counting.files,
      logFaults: counting.faults,
      lastErrors: counting.lastErrors,
      relays: rolePipeline.all,
      probes: probing.reports,
      reporters: reporters.status,
      listeners: endpoints.addresses,
    });
    self.noteVerdict(made);
    return made;
  };
  const watch = createWatch(clock, () => {
    const now = { nowMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    withReadings(registry, (rows) => readings.sample(rows, now));
    report();
  });
  const endpoints = createEndpointPipeline({
    ...deps,
    report,
    announce: judge.announce,
    gather,
    mark,
    switched: () => counting.switched,
    roleDown: (role) => rolePipeline.isDown(role) ?? probing.isDown(role),
    probes: probing.reports,
    checkNow: probing.checkNow,
  });

  /** Sources of roles, under the limits and keys of their configuration. */
  const prepareRoles = async ({ config }: ReadyConfig): Promise<Prepared> => {
    const undo = () => registry.configure(registrySettings(current.config));
    registry.configure(registrySettings(config));
    try {
      const roleSources = await rolePipeline.prepare(config);
      const discard = async () => {
        await roleSources.discard();
        undo();
      };
      return { swap: roleSources.swap, discard };
    } catch (thrown) {
      undo();
      throw thrown;
    }
  };
  /** Switches logs between two lines, and probes and role counters in one synchronous step. */
  const prepareCounting = async (next: ReadyConfig): Promise<Prepared> => {
    const swapCounting = counting.prepare(next.config);
    await state.commit();
    return {
      async swap() {
        await state.commit();
        current = next;
        changedMs = clock.nowMs();
        await swapCounting();
        await state.commit();
      },
      discard: () => {},
    };
  };

  return {
    async start(config) {
      current = config;
      await endpoints.bind(config.config);
      await rolePipeline.configure(config.config);
      await counting.start(config.config);
      await state.commit();
      await endpoints.open();
      await reporters.configure(config.config, gather);
      watch.start();
    },
    prepare: (next) => [
      () => dryRun(next.config, deps).then(() => undefined),
      () => prepareRoles(next),
      () => endpoints.prepare(next.config),
      () => prepareCounting(next),
      async () => ({ swap: () => reporters.configure(next.config, gather), discard: () => {} }),
    ],
    async stop() {
      watch.stop();
      endpoints.endStreams();
      await Promise.all([counting.stop(), probing.stop()]);
      // Concurrently: each may take seconds, and the agent must stop within five.
      await Promise.all([reporters.stop(), endpoints.close()]);
      await rolePipeline.stop();
    },
  };
}

/** How often the values of the service are judged. */
const watchIntervalMs = 15_000;

/** Judges at an interval, so that problems begin and end also while nobody asks. */
function createWatch(clock: Clock, judge: () => void): { start(): void; stop(): void } {
  let cancel = () => {};
  const run = () => {
    judge();
    cancel = clock.after(watchIntervalMs, run);
  };
  return {
    start() {
      // Not at once, so that it does not slow the start of the agent.
      cancel = clock.after(1_000, run);
    },
    stop: () => cancel(),
  };
}

/** How old the committed counts that the status shows may be. */
const freshMs = 4_000;

interface EndpointPipelineDeps extends Omit<EndpointsDeps, 'status'> {
  report(): StatusReport;
  announce: Judge['announce'];
  gather: Gather;
  state: State;
  /** While logs switch to another configuration: resolves when they have. */
  switched(): Promise<void> | undefined;
}

/** The listeners of a configuration, and the history and the streams of the status page, which outlive a reload. */
interface EndpointPipeline {
  bind(config: AgentConfig): Promise<void>;
  /** Serves requests on what is bound. */
  open(): Promise<void>;
  prepare(config: AgentConfig): Promise<Prepared>;
  addresses(): Endpoints['addresses'];
  /** Ends the history and every stream, so that `close` does not wait for them. */
  endStreams(): void;
  close(): Promise<void>;
}

function createEndpointPipeline(deps: EndpointPipelineDeps): EndpointPipeline {
  const { report, gather, state, clock, drops } = deps;
  let bound: Endpoints | undefined;
  let hasStatus = false;
  /** The status shows committed counts of logs; the commit of a scrape is recent enough. */
  const commit = async () => {
    const { lastCommitMs = 0 } = state.status();
    if (Math.abs(clock.nowMs() - lastCommitMs) >= freshMs) await state.commit();
    await deps.switched();
  };
  const history = createHistory({}, { report, commit, clock });
  const live = createLive({}, { report, history, commit, clock, drops });
  const bind = (config: AgentConfig) => bindEndpoints(config, { ...deps, status: { report, history, live } });

  return {
    async bind(config) {
      bound = await bind(config);
      hasStatus = config.admin !== undefined;
    },
    async open() {
      await bound?.open(gather);
      if (hasStatus) history.start();
    },
    async prepare(config) {
      const next = await bind(config);
      return {
        async swap() {
          const before = bound;
          bound = next;
          try {
            await next.open(gather);
          } finally {
            // Browsers connect again, with the listener's new authentication.
            live.endAll();
            if (config.admin) history.start();
            await before?.close();
          }
        },
        discard: next.close,
      };
    },
    addresses: () => bound?.addresses ?? [],
    endStreams() {
      history.stop();
      live.endAll();
    },
    close: async () => bound?.close(),
  };
}

interface ProbePipelineDeps {
  section: StateSection;
  roles: Pick<Roles, 'healthChecked'>;
  readings: Readings;
  readSecret: ReadSecret;
  clock: Clock;
  log: Log;
}

/** Every probe of a configuration. */
interface ProbePipeline {
  /** Switches to another configuration and its intakes in one step. */
  configure(config: AgentConfig, intakes: Intakes): void;
  /** Whether the role's last health check failed; false without a result. */
  isDown(role: string): boolean;
  reports(): readonly ProbeReport[];
  /** Runs a probe now; undefined for a name that is not configured. */
  checkNow(name: string): Promise<ProbeReport | undefined>;
  stop(): Promise<void>;
}

function createProbePipeline(deps: ProbePipelineDeps): ProbePipeline {
  const log = deps.log.named('probes');
  const down = new Set<string>();
  let runner: Runner | undefined;

  const open = ({ instance }: AgentConfig): Runner => {
    const opened = createRunner(
      { instance },
      {
        ...deps,
        log,
        tracing,
        onResult({ kind, service }, { ok, reason }) {
          if (kind !== 'health') return;
          if (ok) down.delete(service);
          else down.add(service);
          deps.roles.healthChecked(service, reason);
        },
      },
    );
    deps.section.assign(opened.durable);
    return opened;
  };

  return {
    configure(config, intakes) {
      const rows = planProbes(config);
      if (!runner && rows.length === 0) return;
      runner ??= open(config);
      const checked = new Set(rows.filter(({ kind }) => kind === 'health').map(({ service }) => service));
      for (const service of down) if (!checked.has(service)) down.delete(service);
      runner.configure(rows, { immediate: intakes.found, kept: intakes.kept, durable: intakes.events });
    },
    isDown: (role) => down.has(role),
    reports: () => runner?.reports() ?? [],
    checkNow: async (name) => runner?.checkNow(name),
    stop: async () => runner?.stop(),
  };
}
