import type { ReadSecret } from '../core/access.ts';
import type { Address } from '../core/address.ts';
import { agentMetric } from '../core/agent-metrics.ts';
import { createLazyStore } from '../core/lazy-store.ts';
import { createPageStore } from '../core/page-store.ts';
import type { Clock, Log, Readings, Stop } from '../core/ports.ts';
import type { Registry } from '../core/registry.ts';
import type { Vocabulary } from '../core/vocabulary.ts';
import type { Scrape } from '../sources/scrape/source.ts';
import type { Statsd } from '../sources/statsd/source.ts';
import { wordsFor } from '../sources/vocabularies.ts';
import type { Block } from './blocks.ts';
import type { ServiceConfig } from './config/types.ts';
import { streamTls } from './stream-tls.ts';

export interface RelayDeps {
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
export interface RelayOptions {
  service: ServiceConfig;
  block: Block;
  place: number;
}

/** What one role sends itself: its page, its datagrams, or both. */
export interface Relay {
  readonly service: string;
  readonly scrape?: Scrape;
  readonly statsd?: Statsd;
  stop(): Promise<void>;
}

/** Ranks of a service's sources: what the agent counts itself wins, then the page, then datagrams. */
export const ranksPerService = 3;

async function startScrape(
  { service, block, place }: RelayOptions,
  deps: RelayDeps,
): Promise<[Scrape, Stop]> {
  const { createScrape } = await import('../sources/scrape/source.ts');
  const { registry } = deps;
  const { name, vocabulary } = service;
  const show = createPageStore();
  const words = wordsFor(vocabulary, deps.vocabularies, `services.${name}.vocabulary`);
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
    carried: true,
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
  { service, block, place }: RelayOptions,
  deps: RelayDeps,
): Promise<[Statsd, Stop]> {
  const { createStatsd } = await import('../sources/statsd/source.ts');
  const { registry } = deps;
  const { name, vocabulary } = service;
  const words = wordsFor(vocabulary, deps.vocabularies, `services.${name}.vocabulary`);
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
export async function startRelay(options: RelayOptions, deps: RelayDeps): Promise<Relay> {
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
