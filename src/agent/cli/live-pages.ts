import { catalog, type Role, roles } from '../../core/catalog.ts';
import { systemClock } from '../../core/clock.ts';
import type { Log } from '../../core/ports.ts';
import { withoutUrlSecrets } from '../../core/redacted.ts';
import { createRegistry } from '../../core/registry/registry.ts';
import { type Coverage, coverageOf } from '../../core/vocabulary.ts';
import { placesRead } from '../../probes/replication/replication-check.ts';
import type { Scrape, ScrapeResult } from '../../sources/scrape/source.ts';
import { readVocabularies } from '../../sources/vocabularies.ts';
import { type AgentConfig, blockOf, blocksOf, type ServiceConfig } from '../config/types.ts';
import { shippedFolder } from '../installation.ts';
import { createReadSecret } from '../read-secret.ts';
import { startRoleSources } from '../role-sources.ts';
import type { Io } from './io.ts';

/** A log that writes nothing. A command prints what it finds, and a log would repeat it. */
export const silent: Log = { write() {}, named: () => silent };

/** One page of one role. Its series are not exported. */
interface LivePage {
  service: ServiceConfig;
  /** The scrape, which ends when the page is closed. */
  scrape: Scrape;
  result: ScrapeResult;
  close(): Promise<void>;
}

/** Fetches every page that the configuration names, once. */
export async function openLivePages(config: AgentConfig, io: Io): Promise<LivePage[]> {
  const blocks = blocksOf(config);
  const scraped = config.services.flatMap((service, place) =>
    service.selected && service.scrape ? [{ service, place }] : [],
  );
  return Promise.all(
    scraped.map(async ({ service, place }): Promise<LivePage> => {
      const relay = await startRoleSources(
        { service: { ...service, statsd: undefined }, block: blockOf(blocks, service.name), place },
        {
          registry: createRegistry({ limits: config.limits }, { clock: systemClock }),
          vocabularies: () => readVocabularies(shippedFolder('vocabularies')),
          ownListeners: () => [],
          mark: 'once',
          readSecret: createReadSecret(io.env),
          onKernelDrops: () => {},
          onPage: () => {},
          clock: systemClock,
          log: silent,
        },
      );
      const scrape = relay.scrape!;
      return { service, scrape, result: await scrape.scrapeNow(), close: relay.stop };
    }),
  );
}

/** What probes need that a command runs once: these pages are the metrics that they read. */
export const probeDeps = (env: Io['env'], pages: readonly LivePage[] = []) => ({
  readSecret: createReadSecret(env),
  readings: { values: (family: string) => pages.flatMap(({ scrape }) => [...scrape.values(family)]) },
  clock: systemClock,
  log: silent,
});

/** One page of a role, compared with the catalog. The lists are empty if there is no page. */
export interface LiveReport extends Coverage {
  service: string;
  url: string;
  /** Why there is no page. */
  failure?: string;
  vocabulary?: string;
}

const isRole = (name: string): name is Role => (roles as readonly string[]).includes(name);

/** Scrapes every page of the configuration once and compares it with the catalog. */
export async function liveReports(config: AgentConfig, io: Io): Promise<LiveReport[]> {
  const pages = await openLivePages(config, io);
  const known = new Set([...catalog.map(({ name }) => name), ...placesRead(config.domains?.replication)]);
  return Promise.all(
    pages.map(async ({ service, scrape, result, close }): Promise<LiveReport> => {
      const mapped = scrape.mapped();
      const { vocabulary } = scrape.status();
      await close();
      const about = { service: service.name, url: withoutUrlSecrets(service.scrape!.url) };
      if (!result.ok) return { ...about, failure: result.what, ...coverageOf([], [], known) };
      const { name } = service;
      const wanted = isRole(name) ? catalog.filter((metric) => metric.roles.includes(name)) : [];
      const names = wanted.map((metric) => metric.name);
      return { ...about, vocabulary, ...coverageOf(mapped, names, known) };
    }),
  );
}

/** A title with a count, and its lines. */
function list(title: string, lines: readonly string[]): string[] {
  if (lines.length === 0) return [`    ${title}: none`];
  return [`    ${title} (${lines.length}):`, ...lines.map((line) => `      ${line}`)];
}

/**
 * The prefix of the service, if most names without a rule have it and are names of the catalog without it; the shortest if there
 * are several.
 */
export function commonPrefix(unmapped: readonly string[]): string | undefined {
  const known = new Set(catalog.map(({ name }) => name));
  const counts = new Map<string, number>();
  for (const name of unmapped) {
    for (let at = name.indexOf('_'); at > 0; at = name.indexOf('_', at + 1)) {
      const rest = name.slice(at + 1);
      if (!known.has(rest) && !known.has(`svc_${rest}`)) continue;
      counts.set(name.slice(0, at), (counts.get(name.slice(0, at)) ?? 0) + 1);
    }
  }
  const [best] = [...counts].sort((one, other) => other[1] - one[1] || one[0].length - other[0].length);
  return best && best[1] >= leastOfPrefix ? best[0] : undefined;
}

/** Fewer names than this may share a prefix by chance. */
const leastOfPrefix = 3;

function coverageLines({ made, missing, unmapped, alike, leftOut }: Coverage): string[] {
  const mapped = Object.entries(made).filter(([name, raw]) => raw.length > 1 || raw[0] !== name);
  const others = unmapped.filter((name) => !alike[name]);
  const own = Object.keys(made).length - mapped.length;
  const prefix = commonPrefix(unmapped);
  return [
    ...(own > 0 ? [`    metrics under the catalog’s own names: ${own}`] : []),
    ...(prefix ? [`    most names begin with ${prefix}_: set scrape.prefix to ${prefix}`] : []),
    ...list(
      'metrics and the raw metrics that they come from',
      mapped.map(([name, raw]) => `${name}: ${raw.join(', ')}`),
    ),
    ...list('metrics of the catalog that the page does not have', missing),
    ...list(
      'raw metrics without a rule that look like one of those',
      Object.entries(alike).map(([name, metrics]) => `${name}: ${metrics.join(', ')}?`),
    ),
    ...list('other raw metrics without a rule, relayed under their own names', others),
    ...list('left out on purpose, because other metrics contain them', leftOut),
  ];
}

export function liveText(reports: readonly LiveReport[]): string {
  if (reports.length === 0) return 'Live: no service has a page to scrape (services.<service>.scrape).\n';
  const lines = reports.flatMap(({ service, url, failure, vocabulary, ...coverage }) => [
    `  ${service}  ${url}  ${failure ? `FAILED: ${failure}` : `vocabulary: ${vocabulary ?? 'none matches'}`}`,
    ...(failure ? [] : coverageLines(coverage)),
  ]);
  return ['Live', ...lines, ''].join('\n');
}
