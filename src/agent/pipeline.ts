import { randomUUID } from 'node:crypto';
import type { ReadSecret } from '../core/access.ts';
import { parseAddress } from '../core/address.ts';
import type { Clock, Drops, Gather, Log, Readings } from '../core/ports.ts';
import type { Registry } from '../core/registry/registry.ts';
import type { Vocabulary } from '../core/vocabulary.ts';
import { createLineMemory } from '../sources/scrape/exposition/line-memory.ts';
import { readVocabularies } from '../sources/vocabularies.ts';
import { withReadings } from './admin/families.ts';
import type { Health } from './admin/health.ts';
import { statusReport } from './admin/status.ts';
import type { AgentConfig, ReadyConfig, ServiceConfig } from './config/types.ts';
import { dryRun } from './dry-run.ts';
import { createEndpointPipeline } from './endpoint-pipeline.ts';
import type { Endpoints, EndpointsDeps } from './endpoints.ts';
import { createGather } from './gather.ts';
import { lineBytes } from './heap-size.ts';
import { shippedFolder } from './installation.ts';
import { registrySettings } from './intakes.ts';
import { createLogPipeline } from './log-pipeline.ts';
import { createProbePipeline } from './probe-pipeline.ts';
import type { Prepare, Prepared } from './reload.ts';
import { createReporters } from './reporters.ts';
import { createRolePipeline, type RolePipeline } from './role-pipeline.ts';
import { createRoles, type Roles } from './role-restarts.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { State } from './state/state.ts';
import { incidentsIn } from './verdict/alike.ts';
import { createServiceReadings } from './verdict/readings.ts';
import { createJudge } from './verdict/verdict.ts';
import { createWatch } from './watch.ts';

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

/** All parts of a configuration, from the sources through the registry to the endpoints. */
export interface Pipeline {
  /** Starts the parts. Throws if a part cannot start; `stop` then ends the parts that did start. */
  start(config: ReadyConfig): Promise<void>;
  /**
   * Returns functions that build each part of another configuration beside the running one. Building throws if the part cannot be
   * built, and then nothing has changed. The parts are swapped in order.
   */
  prepare(config: ReadyConfig): readonly Prepare[];
  /** Ends every part; the state is committed by the caller. */
  stop(): Promise<void>;
}

/** The addresses that the agent listens on; a reload replaces them. */
interface Listening {
  addresses: Endpoints['addresses'];
}

function openRolePipeline(
  { registry, self, readSecret, clock, drops, log }: PipelineDeps,
  { mark, listening, onPage }: { mark: string; listening: Listening; onPage: Roles['scraped'] },
): RolePipeline {
  let vocabularies: Promise<readonly Vocabulary[]> | undefined;
  return createRolePipeline({
    registry,
    vocabularies() {
      vocabularies ??= readVocabularies(shippedFolder('vocabularies'));
      return vocabularies;
    },
    ownListeners: () => listening.addresses.flatMap(({ address }) => parseAddress(address) ?? []),
    mark,
    readSecret,
    lineMemory: createLineMemory(lineBytes()),
    onKernelDrops(more) {
      self.statsdKernelDrops.inc(more);
      drops.count('statsd', 'buffer_full', more);
    },
    onPage,
    clock,
    log,
  });
}

/** The sources, which fill the registry, and the probes, which read some of what the sources count. */
function openSources(deps: PipelineDeps, { mark, listening }: { mark: string; listening: Listening }) {
  const { registry, state, self, readSecret, clock, drops, log } = deps;
  const roles = createRoles({ clock, log: log.named('roles') });
  state.section('roles').assign(roles.durable);
  const rolePipeline = openRolePipeline(deps, { mark, listening, onPage: roles.scraped });
  const values: Readings['values'] = (family) =>
    [...rolePipeline.all()].flatMap(({ scrape }) => [...(scrape?.values(family) ?? [])]);
  const section = state.section('probes');
  const probing = createProbePipeline({ section, roles, readings: { values }, readSecret, clock, log });
  const counting = createLogPipeline({
    processEvents: roles,
    opened(intakes, config) {
      roles.configure(
        config.services.filter(isWatched).map(({ name }) => name),
        intakes.events,
      );
      probing.configure(config, intakes);
    },
    registry,
    self,
    logsSection: state.section('log-positions'),
    clock,
    drops,
    log,
  });
  return { rolePipeline, probing, counting };
}

/** Prepares the sources of roles, with the limits and keys of their configuration. */
async function prepareRoles(
  registry: Registry,
  rolePipeline: RolePipeline,
  { from, to }: { from: AgentConfig; to: AgentConfig },
): Promise<Prepared> {
  const undo = () => registry.configure(registrySettings(from));
  registry.configure(registrySettings(to));
  try {
    const roleSources = await rolePipeline.prepare(to);
    const discard = async () => {
      await roleSources.discard();
      undo();
    };
    return { swap: roleSources.swap, discard };
  } catch (thrown) {
    undo();
    throw thrown;
  }
}

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { registry, state, self, health, readSecret, clock, drops, log } = deps;
  const startedMs = clock.nowMs();
  const mark = randomUUID();
  let current: ReadyConfig;
  let changedMs: number | undefined;
  const listening: Listening = { addresses: [] };
  const { rolePipeline, probing, counting } = openSources(deps, { mark, listening });
  const reporters = createReporters({ state, self, readSecret, clock, drops, log });
  const readings = createServiceReadings();
  const judge = createJudge(() => current.config.maintenance.windows);
  state.section('incidents').assign(judge.durable);
  const switched = () => counting.switched;
  const gather: Gather = createGather({
    registry,
    state,
    self,
    relaySelf: counting.relaySelf,
    switched,
    refresh: (request) => rolePipeline.refresh(request),
  });

  const report = () => {
    watch.sampleIfDue();
    const made = statusReport(current, {
      registry,
      state,
      health,
      clock,
      startedMs,
      changedMs: () => changedMs,
      reloadError: deps.reloadError,
      readings: readings.report,
      judge: judge.judge,
      files: counting.files,
      logFaults: counting.faults,
      lastErrors: counting.lastErrors,
      relays: rolePipeline.all,
      probes: probing.reports,
      reporters: reporters.status,
      listeners: () => listening.addresses,
    });
    self.showReport({ ...made, incidents: incidentsIn(made.verdict) });
    return made;
  };
  const sample = () => {
    const now = { nowMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    withReadings(registry, (rows) => readings.sample(rows, now));
  };
  const watch = createWatch({ sample, report }, clock);
  const endpoints = createEndpointPipeline({
    listeners: deps.listeners,
    listening,
    state,
    health,
    report,
    async announce(change) {
      judge.announce(change);
      report();
      await state.commit();
    },
    gather,
    mark,
    switched,
    roleDown: (role) => rolePipeline.isDown(role) ?? probing.isDown(role),
    probes: probing.reports,
    checkNow: probing.checkNow,
    readSecret,
    clock,
    drops,
    log,
  });

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
      () => dryRun(next.config, { clock }).then(() => undefined),
      () => prepareRoles(registry, rolePipeline, { from: current.config, to: next.config }),
      () => endpoints.prepare(next.config),
      () => prepareCounting(next),
      async () => ({ swap: () => reporters.configure(next.config, gather), discard: () => {} }),
    ],
    async stop() {
      watch.stop();
      endpoints.endStreams();
      await Promise.all([counting.stop(), probing.stop()]);
      // These stops run concurrently: each may take seconds, and the agent must stop within five.
      await Promise.all([reporters.stop(), endpoints.close()]);
      await rolePipeline.stop();
    },
  };
}
