import { randomUUID } from 'node:crypto';
import type { ReadSecret } from '../core/access.ts';
import { parseAddress } from '../core/address.ts';
import type { Clock, Drops, Gather, Log } from '../core/ports.ts';
import type { Registry, RegistrySettings } from '../core/registry.ts';
import { readVocabularies } from '../sources/vocabularies.ts';
import type { Health } from './admin/status.ts';
import { statusReport } from './admin/status.ts';
import type { AgentConfig, ReadyConfig, ServiceConfig } from './config/types.ts';
import { bindEndpoints, type Endpoints, type EndpointsDeps } from './endpoints.ts';
import { createGather } from './gather.ts';
import { shippedFolder } from './installation.ts';
import { createLogPipeline } from './log-pipeline.ts';
import { createProbePipeline } from './probe-pipeline.ts';
import { createReporters } from './reporters.ts';
import { createRolePipeline, type RolePipeline } from './role-pipeline.ts';
import { createRoles } from './role-restarts.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { State, StateSection } from './state/state.ts';

/** What the registry has to know of a configuration. */
export function registrySettings(config: AgentConfig): RegistrySettings {
  const serviceKeys = config.services.map(({ name }) => name);
  return { limits: config.limits, serviceKeys, globalTags: config.metrics.tags };
}

/** Whether anything tells of the service's restarts. */
const isWatched = ({ selected, logs, health, scrape }: ServiceConfig): boolean =>
  selected && Boolean(logs || health || scrape);

interface PipelineDeps extends Pick<EndpointsDeps, 'listeners'> {
  registry: Registry;
  state: State;
  self: SelfMetrics;
  health: Health;
  /** Sections of the state, by name. */
  section(name: string): StateSection;
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
  log: Log;
  /** Why the newest configuration was not taken; undefined when it was. */
  reloadError(): string | undefined;
}

/** Everything that a configuration sets to work: sources, reporters, listeners. */
export interface Pipeline {
  start(config: ReadyConfig): Promise<void>;
  /** Puts another configuration in the place of the one at work. Throws what binding throws, with nothing changed. */
  swap(config: ReadyConfig): Promise<void>;
  stop(): Promise<void>;
}

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { registry, state, self } = deps;
  const startedMs = deps.clock.nowMs();
  const mark = randomUUID();
  let current: ReadyConfig;
  let endpoints: Endpoints | undefined;
  let relays: RolePipeline | undefined;
  const roles = createRoles({ ...deps, log: deps.log.named('roles') });
  deps.section('roles').hand(roles.durable);
  const probing = createProbePipeline({
    ...deps,
    section: deps.section('probes'),
    roles,
    readings: {
      look: (family) => [...(relays?.all() ?? [])].flatMap(({ scrape }) => [...(scrape?.look(family) ?? [])]),
    },
  });
  const counting = createLogPipeline({
    ...deps,
    logsSection: deps.section('logs'),
    life: roles,
    opened(intakes, config) {
      roles.configure(
        config.services.filter(isWatched).map(({ name }) => name),
        intakes.events,
      );
      probing.configure(config, intakes);
    },
  });
  const reporters = createReporters(deps);
  const gather: Gather = createGather({
    registry,
    state,
    self,
    relaySelf: counting.relaySelf,
    refresh: async (request) => relays?.refresh(request),
  });

  const report = () =>
    statusReport(current, {
      ...deps,
      startedMs,
      files: counting.files,
      relays: () => relays?.all() ?? [],
      probes: probing.reports,
      listeners: () => endpoints?.addresses ?? [],
    });
  const bind = (config: AgentConfig) =>
    bindEndpoints(config, {
      ...deps,
      report,
      mark,
      roleDown: (role) => relays?.isDown(role) ?? probing.isDown(role),
      probes: probing.reports,
      look: probing.look,
    });
  const openRelays = async (): Promise<RolePipeline> =>
    createRolePipeline({
      ...deps,
      vocabularies: await readVocabularies(shippedFolder('vocabularies')),
      ownListeners: () => (endpoints?.addresses ?? []).flatMap(({ address }) => parseAddress(address) ?? []),
      mark,
      onKernelDrops: (more) => self.statsdKernelDrops.inc(more),
      onPage: roles.scraped,
    });

  /** What roles send goes over first: it is what can fail. */
  const configureRelays = async (config: AgentConfig) => {
    const isRelaying = config.services.some(({ selected, scrape, statsd }) => selected && (scrape || statsd));
    if (!relays && !isRelaying) return;
    relays ??= await openRelays();
    await relays.configure(config);
  };

  return {
    async start(config) {
      current = config;
      endpoints = await bind(config.config);
      await configureRelays(config.config);
      await counting.start(config.config);
      await state.commit();
      await endpoints.open(gather);
      await reporters.configure(config.config, gather);
    },
    async swap(config) {
      const next = await bind(config.config);
      try {
        registry.configure(registrySettings(config.config));
        await configureRelays(config.config);
      } catch (thrown) {
        registry.configure(registrySettings(current.config));
        await next.close();
        throw thrown;
      }
      await state.commit();
      current = config;
      counting.reload(config.config);
      await state.commit();
      const before = endpoints;
      endpoints = next;
      await next.open(gather);
      await reporters.configure(config.config, gather);
      await before?.close();
    },
    async stop() {
      await Promise.all([counting.stop(), probing.stop()]);
      // Side by side: each may take seconds, and the whole agent has five.
      await Promise.all([reporters.stop(), endpoints?.close()]);
      await relays?.stop();
      if (endpoints) await state.commit();
    },
  };
}
