import type { Socket } from 'node:net';
import type { OpenHandshakes, ReadSecret } from '../core/access.ts';
import type { Address } from '../core/address.ts';
import { agentMetric } from '../core/agent-metrics.ts';
import type { Clock, Log, Readings, Source, Stop } from '../core/ports.ts';
import type { Registry } from '../core/registry/registry.ts';
import { createLazyStore, createPageStore } from '../core/registry/value-stores.ts';
import { nextTurn } from '../core/slices.ts';
import type { Vocabulary } from '../core/vocabulary.ts';
import { withPrefix } from '../core/vocabulary-detector.ts';
import type { LineMemory } from '../sources/scrape/exposition/line-memory.ts';
import type { Scrape } from '../sources/scrape/source.ts';
import type { Statsd } from '../sources/statsd/source.ts';
import { vocabularyDetectorFor } from '../sources/vocabularies.ts';
import type { Block, ServiceConfig } from './config/types.ts';

interface StreamTlsDeps {
  clock: Clock;
  log: Log;
}

const handshakeMs = 10_000;

/** TLS of the statsd streams of a role; undefined without TLS. */
async function streamTls(
  { name, statsd }: Pick<ServiceConfig, 'name' | 'statsd'>,
  { clock, log }: StreamTlsDeps,
): Promise<OpenHandshakes<Socket> | undefined> {
  const tls = statsd?.tls;
  if (!tls) return undefined;
  const { createHandshakes } = await import('../reporters/listen/protection.ts');
  const place = `services.${name}.statsd.tls`;
  return (outcome) =>
    createHandshakes({ tls, handshakeMs }, { place, nowMs: clock.nowMs, log, ...outcome }).begin;
}

/** A log that discards entries: the listener that is created next reports the problem. */
export const silent: Log = { write() {}, named: () => silent };

/**
 * Checks the TLS files of a service's streams. Throws `listen_failed` if they cannot be used. A reload checks this before it
 * stops the running listener.
 */
async function checkStreamTls(service: ServiceConfig, clock: Clock): Promise<void> {
  const open = await streamTls(service, { clock, log: silent });
  open?.({ onSecure: () => {}, onFailure: () => {} });
}

export interface RoleSourcesDeps {
  registry: Registry;
  /** The shipped tables, which are read when a role first needs them. */
  vocabularies(): Promise<readonly Vocabulary[]>;
  ownListeners(): readonly Address[];
  /** Names this agent in requests for pages. */
  mark: string;
  readSecret: ReadSecret;
  /** See `ScrapeDeps`. */
  lineMemory?: LineMemory;
  onKernelDrops(more: number): void;
  /** Called after a scrape: the number of counters on the page before, and how many of them fell. */
  onPage(service: string, page: { fallen: number; counters: number }, readings: Readings): void;
  clock: Clock;
  log: Log;
}

/** A service, its block, and its position: if two services send the same series, the first one's is used. */
export interface RoleSourcesOptions {
  service: ServiceConfig;
  block: Block;
  place: number;
}

/** The sources of a role: its page, its datagrams, or both. */
export interface RoleSources {
  readonly service: string;
  readonly scrape?: Scrape;
  readonly statsd?: Statsd;
  /**
   * Fetches a fresh page, or hides the page at the deadline. With the deadline Infinity, it is hidden after `scrape.timeout` less
   * 0.5 s.
   */
  refresh(deadlineMs: number): Promise<void>;
  stop(): Promise<void>;
}

/** The time for sending the response to a scraper whose timeout is not known. */
const answerMs = 500;

/** Precedence of a service's sources: counters of the agent itself, then the page, then datagrams. */
export const ranksPerService = 3;

/** A source of a role that is built but does not run yet. */
interface Built<S extends Source> {
  readonly source: S;
  /** Closes the source's series, in slices: there may be 100,000 of them. */
  close(): Promise<void>;
}

async function buildScrape(
  { service, block, place }: RoleSourcesOptions,
  deps: RoleSourcesDeps,
): Promise<Built<Scrape>> {
  const { createScrape } = await import('../sources/scrape/source.ts');
  const { registry, ownListeners, mark, readSecret, lineMemory, clock } = deps;
  const { name, vocabulary } = service;
  const unprefixed = vocabularyDetectorFor(
    vocabulary,
    await deps.vocabularies(),
    `services.${name}.vocabulary`,
  );
  const detector = withPrefix(unprefixed, service.scrape?.prefix ?? '');
  const show = createPageStore();
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
    translate: detector.translate,
  });
  const about = registry.intake({ ...common, relayed: false, store: registry.immediate, received: false });
  const { help } = agentMetric('svc_role_scrape_up');
  const up = about.gauge('svc_role_scrape_up', {}, { help });
  const log = deps.log.named('scrape');
  const source: Scrape = createScrape(service.scrape!, {
    intake,
    show,
    up,
    detector,
    drops: registry.drops,
    ownListeners,
    mark,
    readSecret,
    lineMemory,
    clock,
    log,
    onPage: (page) => deps.onPage(name, page, source),
  });
  const close = async () => {
    show.hide();
    await intake.closeInSlices(nextTurn);
    about.close();
  };
  return { source, close };
}

async function buildStatsd(
  { service, block, place }: RoleSourcesOptions,
  deps: RoleSourcesDeps,
): Promise<Built<Statsd>> {
  const { createStatsd } = await import('../sources/statsd/source.ts');
  const { registry, onKernelDrops, clock } = deps;
  const { name, vocabulary } = service;
  const detector = vocabularyDetectorFor(
    vocabulary,
    await deps.vocabularies(),
    `services.${name}.vocabulary`,
  );
  const { reporter } = block.metrics;
  const { timerType, defaultHistogramBuckets: bounds } =
    reporter?.kind === 'pullmetrics' ? reporter.options : {};
  const summaries = timerType === 'summary' ? createLazyStore() : undefined;
  const log = deps.log.named('statsd');
  const openHandshakes = await streamTls(service, { clock, log });
  const intake = registry.intake({
    service: name,
    component: 'statsd',
    relayed: true,
    rank: place * ranksPerService + 2,
    store: summaries ?? registry.immediate,
    globalTags: block.metrics.tags,
    received: true,
    tagService: true,
    translate: detector.translate,
  });
  const where = { name: `services.${name}.statsd`, bounds, summaries };
  const source = createStatsd(service.statsd!, {
    ...where,
    openHandshakes,
    intake,
    detector,
    onKernelDrops,
    drops: registry.drops,
    clock,
    log,
  });
  return { source, close: () => intake.closeInSlices(nextTurn) };
}

/** Builds the sources of a role without starting them. */
async function buildRoleSources(options: RoleSourcesOptions, deps: RoleSourcesDeps) {
  const { service } = options;
  // The source that binds addresses comes first, because it can fail to start.
  const statsd = service.statsd && (await buildStatsd(options, deps));
  const scrape = service.scrape && (await buildScrape(options, deps));
  return { statsd, scrape, all: [statsd, scrape].filter((built) => built !== undefined) };
}

/** Builds what `startRoleSources` builds, and discards it. Throws what `startRoleSources` throws before it starts anything. */
export async function checkRoleSources(options: RoleSourcesOptions, deps: RoleSourcesDeps): Promise<void> {
  await checkStreamTls(options.service, deps.clock);
  const { all } = await buildRoleSources(options, deps);
  for (const { close } of all) await close();
}

/** Starts the sources of a service. If one cannot start, rejects with nothing left running. */
export async function startRoleSources(
  options: RoleSourcesOptions,
  deps: RoleSourcesDeps,
): Promise<RoleSources> {
  const { statsd, scrape, all } = await buildRoleSources(options, deps);
  const stops: Stop[] = [];
  const stop = async () => {
    await Promise.all(stops.map((end) => end()));
    for (const { close } of all) await close();
  };
  try {
    for (const { source } of all) stops.push(await source.start());
  } catch (thrown) {
    await stop();
    throw thrown;
  }
  const refresh = async (deadlineMs: number) => {
    const timeoutMs = options.service.scrape?.timeoutMs ?? 0;
    const ownMs = deps.clock.monotonicMs() + Math.max(timeoutMs / 2, timeoutMs - answerMs);
    await scrape?.source.scrapeNow(Number.isFinite(deadlineMs) ? deadlineMs : ownMs);
  };
  return { service: options.service.name, scrape: scrape?.source, statsd: statsd?.source, refresh, stop };
}
