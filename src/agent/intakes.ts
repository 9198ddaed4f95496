import type { Fault } from '../core/errors.ts';
import { seriesIn } from '../core/registry/heap-share.ts';
import type { OpenIntake } from '../core/registry/intake.ts';
import type { Registry, RegistrySettings } from '../core/registry/registry.ts';
import { nextTurn } from '../core/slices.ts';
import { type AgentConfig, blockOf, blocksOf } from './config/types.ts';
import { givenHeapBytes, neededHeapBytes, seriesHeapBytes } from './heap-size.ts';
import { ranksPerService } from './role-sources.ts';

/** The number of sources of the selected services. */
const sourcesOf = ({ services }: AgentConfig): number =>
  services
    .filter(({ selected }) => selected)
    .flatMap(({ health, logs, scrape, statsd }) => [health, logs, scrape, statsd])
    .filter((source) => source !== undefined).length;

/** The part of a configuration that the registry needs. */
export function registrySettings(config: AgentConfig): RegistrySettings {
  const serviceKeys = config.services.map(({ name }) => name);
  const heapBytes = seriesHeapBytes(sourcesOf(config));
  const series = Math.min(config.limits.series, seriesIn(heapBytes));
  const limits = { ...config.limits, series, heapBytes };
  return { limits, serviceKeys, globalTags: config.metrics.tags };
}

const toMiB = (bytes: number): number => Math.round(bytes / 1024 ** 2);
const moreMemory = 'give the process more memory (--max-old-space-size)';

/** Warnings about what the process has too little memory for. */
export function memoryWarnings(config: AgentConfig): Fault[] {
  const { series } = registrySettings(config).limits;
  const sources = sourcesOf(config);
  const needed = neededHeapBytes(sources);
  const given = givenHeapBytes();
  const faults: Fault[] = [];
  if (series < config.limits.series)
    faults.push({
      where: 'limits.series',
      what: `the heap of ${toMiB(given)} MiB has no room for so many series, so the limit is ${series}`,
      got: config.limits.series,
      allowed: `${moreMemory}, or ask for at most ${series}`,
    });
  if (needed > given)
    faults.push({
      where: 'services',
      what: `the heap of ${toMiB(given)} MiB is too small for the health checks, logs, pages and statsd listeners of so many services, which need about ${toMiB(needed)} MiB, so the agent may run out of memory`,
      got: sources,
      allowed: `${moreMemory}, or divide the services among several agents`,
    });
  return faults;
}

/** The intakes of one configuration; durable series stay in the state when they end. */
export interface Intakes {
  /** Series derived from a service's log; `unknown` is the service of lines without a role. */
  logs(service: string): OpenIntake;
  /** The log lag of a service. */
  lag(service: string): OpenIntake;
  /** Gauges of probes; `''` for probes without a service. */
  found(service: string): OpenIntake;
  /** Totals that another system counts, such as a store. */
  kept(service: string): OpenIntake;
  /** The intake of events, which are counted once across restarts. */
  events(service: string): OpenIntake;
  /** The agent's own instruments. */
  self: OpenIntake;
  /** Ends the intakes of logs, in slices: they may have 100,000 series. `close` then ends the other intakes. */
  closeLogs(): Promise<void>;
  /**
   * Ends the intakes. Those that the next configuration would open with the same options remain open, so that it can inherit
   * them.
   */
  close(next?: AgentConfig): Inherited;
}

/** Inherited intakes, by purpose, service and all options that they depend on. */
type Inherited = Map<string, OpenIntake>;

const purposes = {
  logs: { component: 'logs', store: 'durable', received: true },
  lag: { component: 'logs', store: 'immediate', received: false },
  found: { component: 'probes', store: 'immediate', received: false },
  kept: { component: 'probes', store: 'immediate', received: false, externalTotals: true },
  events: { component: 'probes', store: 'durable', received: false },
} as const;
type Purpose = keyof typeof purposes;
/** Purposes of intakes whose owners use their handles across a reload. */
const lasting: ReadonlySet<Purpose> = new Set<Purpose>(['found', 'kept', 'events']);

/**
 * The options of a configuration's intakes, and a key that is equal for equal options. Other services and the limits are no part
 * of it: they concern only what is received, and its intakes are not inherited.
 */
function settingsOf(config: AgentConfig) {
  const blocks = blocksOf(config);
  const names = config.services.map(({ name }) => name);
  return (purpose: Purpose, service: string) => {
    const place = names.indexOf(service);
    // Lines without a role have the lowest rank: series of a named role take precedence. Nobody else sends the agent's own series.
    const rank = (place < 0 ? names.length : place) * ranksPerService;
    const options = {
      service,
      relayed: false,
      rank: purposes[purpose].received ? rank : 0,
      globalTags: blockOf(blocks, service).metrics.tags,
      tagService: true,
    };
    return { options, key: JSON.stringify([purpose, options, config.limits.forbiddenTags]) };
  };
}

/** Opens an intake per service and purpose at its first use, or inherits it. */
export function openIntakes(
  registry: Registry,
  config: AgentConfig,
): Intakes & {
  /** Makes these intakes available to inherit at their first use. */
  inherit(intakes: Inherited): void;
  /** Closes the inherited intakes that were not used again. */
  closeUnused(): void;
} {
  const settings = settingsOf(config);
  let inherited: Inherited = new Map();
  const open = new Map<string, { purpose: Purpose; service: string; intake: OpenIntake }>();
  const intake = (purpose: Purpose, service: string): OpenIntake => {
    const { options, key } = settings(purpose, service);
    const known = open.get(key) ?? {
      purpose,
      service,
      intake:
        inherited.get(key) ??
        registry.intake({ ...options, ...purposes[purpose], store: registry[purposes[purpose].store] }),
    };
    inherited.delete(key);
    open.set(key, known);
    return known.intake;
  };
  const self = registry.intake({
    service: '',
    component: 'agent',
    relayed: false,
    rank: -1,
    store: registry.immediate,
    globalTags: config.metrics.tags,
    received: false,
    tagService: false,
    exempt: true,
    // prom-client stores these totals; after a reload they continue in another intake.
    externalTotals: true,
  });
  return {
    logs: (service) => intake('logs', service),
    lag: (service) => intake('lag', service),
    found: (service) => intake('found', service),
    kept: (service) => intake('kept', service),
    events: (service) => intake('events', service),
    self,
    inherit(intakes) {
      inherited = intakes;
    },
    async closeLogs() {
      for (const { purpose, intake: opened } of open.values())
        if (purpose === 'logs') await opened.closeInSlices(nextTurn);
    },
    close(next) {
      self.close();
      const nextSettings = next && settingsOf(next);
      const left: Inherited = new Map();
      for (const [key, { purpose, service, intake: opened }] of open) {
        const isLike = lasting.has(purpose) && nextSettings?.(purpose, service).key === key;
        if (isLike) left.set(key, opened);
        else opened.close();
      }
      return left;
    },
    closeUnused() {
      for (const left of inherited.values()) left.close();
      inherited.clear();
    },
  };
}
