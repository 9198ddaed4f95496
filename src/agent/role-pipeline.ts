import type { Socket } from 'node:net';
import type { OpenHandshakes, ReadSecret } from '../core/access.ts';
import type { Address } from '../core/address.ts';
import { agentMetric } from '../core/agent-metrics.ts';
import type { Clock, GatherRequest, Log, Readings, Stop } from '../core/ports.ts';
import type { Registry } from '../core/registry.ts';
import { createLazyStore, createPageStore } from '../core/stores.ts';
import type { Vocabulary } from '../core/vocabulary.ts';
import type { Scrape } from '../sources/scrape/source.ts';
import type { Statsd } from '../sources/statsd/source.ts';
import { vocabularyDetectorFor } from '../sources/vocabularies.ts';
import { type AgentConfig, type Block, blockOf, blocksOf, type ServiceConfig } from './config/types.ts';

interface StreamTlsDeps {
  clock: Clock;
  log: Log;
}

const handshakeMs = 10_000;

/** TLS of the streams that a service's role writes to; undefined where they are in the clear. */
async function streamTls(
  { name, statsd }: Pick<ServiceConfig, 'name' | 'statsd'>,
  { clock, log }: StreamTlsDeps,
): Promise<OpenHandshakes<Socket> | undefined> {
  const tls = statsd?.tls;
  if (!tls) return undefined;
  const { createHandshakes } = await import('../reporters/listen/handshakes.ts');
  const place = `services.${name}.statsd.tls`;
  return (outcome) =>
    createHandshakes({ tls, handshakeMs }, { place, nowMs: clock.nowMs, log, ...outcome }).begin;
}

/** The listener that follows says what there is to say. */
const silent: Log = { write() {}, named: () => silent };

/** Throws `listen_failed` if these files cannot serve: a reload asks before it gives up what does. */
async function checkStreamTls(service: ServiceConfig, clock: Clock): Promise<void> {
  const open = await streamTls(service, { clock, log: silent });
  open?.({ onSecure: () => {}, onFailure: () => {} });
}

export interface RoleSourcesDeps {
  registry: Registry;
  /** The shipped tables. */
  vocabularies: readonly Vocabulary[];
  ownListeners(): readonly Address[];
  /** Names this agent in requests for pages. */
  mark: string;
  readSecret: ReadSecret;
  onKernelDrops(more: number): void;
  /** A page of the service was taken; of so many counters on the page before, so many fell. */
  onPage(service: string, page: { fallen: number; counters: number }, readings: Readings): void;
  clock: Clock;
  log: Log;
}

/** A service, its block, and its place among the services: of two that send the same series the first keeps it. */
interface RoleSourcesOptions {
  service: ServiceConfig;
  block: Block;
  place: number;
}

/** What one role sends itself: its page, its datagrams, or both. */
export interface RoleSources {
  readonly service: string;
  readonly scrape?: Scrape;
  readonly statsd?: Statsd;
  stop(): Promise<void>;
}

/** Ranks of a service's sources: what the agent counts itself wins, then the page, then datagrams. */
export const ranksPerService = 3;

async function startScrape(
  { service, block, place }: RoleSourcesOptions,
  deps: RoleSourcesDeps,
): Promise<[Scrape, Stop]> {
  const { createScrape } = await import('../sources/scrape/source.ts');
  const { registry } = deps;
  const { name, vocabulary } = service;
  const show = createPageStore();
  const words = vocabularyDetectorFor(vocabulary, deps.vocabularies, `services.${name}.vocabulary`);
  const common = {
    service: name,
    component: 'scrape',
    rank: place * ranksPerService + 1,
    globalTags: block.metrics.tags,
    tagService: true,
  } as const;
  const intake = registry.intake({
    ...common,
    relayed: true,
    store: show,
    received: true,
    externalTotals: true,
    translate: words.translate,
  });
  const about = registry.intake({ ...common, relayed: false, store: registry.immediate, received: false });
  const { help } = agentMetric('svc_role_scrape_up');
  const up = about.gauge('svc_role_scrape_up', {}, { help });
  const log = deps.log.named('scrape');
  const scrape: Scrape = createScrape(service.scrape!, {
    ...deps,
    intake,
    show,
    up,
    words,
    log,
    drops: registry.drops,
    onPage: (page) => deps.onPage(name, page, scrape),
  });
  const stop = await scrape.start();
  return [
    scrape,
    async () => {
      await stop();
      intake.close();
      about.close();
    },
  ];
}

async function startStatsd(
  { service, block, place }: RoleSourcesOptions,
  deps: RoleSourcesDeps,
): Promise<[Statsd, Stop]> {
  const { createStatsd } = await import('../sources/statsd/source.ts');
  const { registry } = deps;
  const { name, vocabulary } = service;
  const words = vocabularyDetectorFor(vocabulary, deps.vocabularies, `services.${name}.vocabulary`);
  const { reporter } = block.metrics;
  const { timerType, defaultHistogramBuckets: bounds } =
    reporter?.kind === 'pullmetrics' ? reporter.options : {};
  const summaries = timerType === 'summary' ? createLazyStore() : undefined;
  const intake = registry.intake({
    service: name,
    component: 'statsd',
    relayed: true,
    rank: place * ranksPerService + 2,
    store: summaries ?? registry.immediate,
    globalTags: block.metrics.tags,
    received: true,
    tagService: true,
    translate: words.translate,
  });
  const log = deps.log.named('statsd');
  const where = { name: `services.${name}.statsd`, bounds, summaries };
  const openHandshakes = await streamTls(service, { clock: deps.clock, log });
  const statsd = createStatsd(service.statsd!, {
    ...deps,
    ...where,
    openHandshakes,
    intake,
    words,
    log,
    drops: registry.drops,
  });
  const stop = await statsd.start().catch((thrown: unknown) => {
    intake.close();
    throw thrown;
  });
  return [
    statsd,
    async () => {
      await stop();
      intake.close();
    },
  ];
}

/** Starts what a service's configuration asks for; rejects, with nothing left running, where it can never be. */
export async function startRoleSources(
  options: RoleSourcesOptions,
  deps: RoleSourcesDeps,
): Promise<RoleSources> {
  const { service } = options;
  const [statsd, stopStatsd] = service.statsd ? await startStatsd(options, deps) : [];
  const [scrape, stopScrape] = service.scrape ? await startScrape(options, deps) : [];
  return {
    service: service.name,
    scrape,
    statsd,
    async stop() {
      await Promise.all([stopScrape?.(), stopStatsd?.()]);
    },
  };
}

/** Everything that roles send themselves. */
export interface RolePipeline {
  /**
   * Goes over to another configuration. What did not change goes on as it was. Rejects where a new address
   * cannot be had, with nothing changed, unless that address is one the old configuration held.
   */
  configure(config: AgentConfig): Promise<void>;
  /** Sees to it that the pages of the services a gather takes are fresh, or missed its deadline. */
  refresh(request: GatherRequest): Promise<void>;
  /** Whether the role's last page failed; undefined for one that is not scraped. */
  isDown(role: string): boolean | undefined;
  all(): Iterable<RoleSources>;
  stop(): Promise<void>;
}

interface Running {
  readonly key: string;
  readonly relay: RoleSources;
  readonly addresses: readonly string[];
}

const addressesOf = ({ statsd }: ServiceConfig): string[] =>
  [statsd?.listen, statsd?.tcp, statsd?.unix].filter((address) => address !== undefined);

/** All that a relay depends on; as long as it is the same, so is the relay. */
function keyOf({ service, block, place }: RoleSourcesOptions, config: AgentConfig): string {
  const { scrape, statsd, vocabulary } = service;
  const keys = config.services.map(({ name }) => name);
  return JSON.stringify([
    scrape,
    statsd,
    vocabulary,
    place,
    block.metrics.tags,
    block.metrics.reporter,
    config.limits,
    keys,
  ]);
}

export function createRolePipeline(deps: RoleSourcesDeps): RolePipeline {
  let running = new Map<string, Running>();

  const wantedOf = (config: AgentConfig): (RoleSourcesOptions & { key: string })[] => {
    const blocks = blocksOf(config);
    return config.services.flatMap((service, place) => {
      if (!service.selected || !(service.scrape || service.statsd)) return [];
      const options = { service, place, block: blockOf(blocks, service.name) };
      return [{ ...options, key: keyOf(options, config) }];
    });
  };
  const start = async (options: RoleSourcesOptions & { key: string }): Promise<Running> => ({
    key: options.key,
    relay: await startRoleSources(options, deps),
    addresses: addressesOf(options.service),
  });

  return {
    async configure(config) {
      const wanted = wantedOf(config);
      const next = new Map<string, Running>();
      for (const { key, service } of wanted) {
        const known = running.get(service.name);
        if (known?.key === key) next.set(service.name, known);
      }
      const leaving = [...running.values()].filter((one) => next.get(one.relay.service) !== one);
      const held = new Set(leaving.flatMap(({ addresses }) => addresses));
      const [after, before] = [true, false].map((isHeld) =>
        wanted.filter(
          ({ service }) =>
            !next.has(service.name) && addressesOf(service).some((address) => held.has(address)) === isHeld,
        ),
      ) as [typeof wanted, typeof wanted];
      const started: Running[] = [];
      try {
        for (const { service } of after) await checkStreamTls(service, deps.clock);
        for (const options of before) started.push(await start(options));
      } catch (thrown) {
        await Promise.all(started.map(({ relay }) => relay.stop()));
        throw thrown;
      }
      await Promise.all(leaving.map(({ relay }) => relay.stop()));
      for (const one of started) next.set(one.relay.service, one);
      running = next;
      for (const options of after) next.set(options.service.name, await start(options));
    },
    async refresh({ takes, deadlineMs }) {
      if (deadlineMs === undefined) return;
      const deadline = Number.isFinite(deadlineMs) ? deadlineMs : undefined;
      const asked = [...running.values()].filter(({ relay }) =>
        takes({ service: relay.service, relayed: true }),
      );
      await Promise.all(asked.map(({ relay }) => relay.scrape?.scrapeNow(deadline)));
    },
    isDown(role) {
      const scrape = running.get(role)?.relay.scrape;
      return scrape && scrape.status().up === false;
    },
    *all() {
      for (const { relay } of running.values()) yield relay;
    },
    async stop() {
      await Promise.all([...running.values()].map(({ relay }) => relay.stop()));
      running = new Map();
    },
  };
}
