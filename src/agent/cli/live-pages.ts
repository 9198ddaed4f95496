import { catalog, type Role, roles } from '../../core/catalog.ts';
import { systemClock } from '../../core/clock.ts';
import type { Log } from '../../core/ports.ts';
import { createRegistry } from '../../core/registry.ts';
import { placesRead } from '../../probes/replication/readings.ts';
import type { Scrape, ScrapeResult } from '../../sources/scrape/source.ts';
import { readVocabularies } from '../../sources/vocabularies.ts';
import { type AgentConfig, blockOf, blocksOf, type ServiceConfig } from '../config/types.ts';
import { shippedFolder } from '../installation.ts';
import { createReadSecret } from '../read-secret.ts';
import { startRoleSources } from '../role-pipeline.ts';
import type { Io } from './io.ts';

/** A command prints what it finds; a log beside that would say it twice. */
export const silent: Log = { write() {}, named: () => silent };

/** One page of one role, shown to nobody. */
interface LivePage {
  service: ServiceConfig;
  /** Over once it is closed. */
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

/** What one look at a role's page says. */
export interface LiveReport {
  service: string;
  url: string;
  /** Why there is no page; the lists are empty then. */
  failure?: string;
  vocabulary?: string;
  /** Metrics of the catalog that the role should send and does not. */
  missing: readonly string[];
  /** Metrics that it sends, that no table takes into the catalog, and that no probe reads. */
  unmapped: readonly string[];
}

const isRole = (name: string): name is Role => (roles as readonly string[]).includes(name);
const catalogNames = new Set(catalog.map(({ name }) => name));

/** Looks once at every page that the configuration names, and holds it against the catalog. */
export async function lookLive(config: AgentConfig, io: Io): Promise<LiveReport[]> {
  const pages = await openLivePages(config, io);
  return Promise.all(
    pages.map(async ({ service, scrape, result, close }): Promise<LiveReport> => {
      const names = scrape.names();
      const { vocabulary } = scrape.status();
      await close();
      const about = { service: service.name, url: service.scrape!.url };
      if (!result.ok) return { ...about, failure: result.what, missing: [], unmapped: [] };
      return {
        ...about,
        vocabulary,
        ...compared(service.name, names, placesRead(config.domains?.replication)),
      };
    }),
  );
}

function compared(
  service: string,
  names: ReadonlyMap<string, ReadonlySet<string>>,
  probed: readonly string[],
): Pick<LiveReport, 'missing' | 'unmapped'> {
  const known = new Set([...catalogNames, ...probed]);
  const sent = new Set([...names.values()].flatMap((set) => [...set]));
  const wanted = isRole(service) ? catalog.filter((metric) => metric.roles.includes(service)) : [];
  return {
    missing: wanted.map(({ name }) => name).filter((name) => !sent.has(name)),
    unmapped: [...names]
      .filter(([, to]) => ![...to].some((name) => known.has(name)))
      .map(([name]) => name)
      .sort(),
  };
}

/** The reports for people. */
export function liveText(reports: readonly LiveReport[]): string {
  if (reports.length === 0) return 'Live: no service has a page to look at (services.<service>.scrape).\n';
  const list = (title: string, names: readonly string[]) =>
    names.length === 0
      ? [`    ${title}: none`]
      : [`    ${title} (${names.length}):`, ...names.map((name) => `      ${name}`)];
  const lines = reports.flatMap(({ service, url, failure, vocabulary, missing, unmapped }) => [
    `  ${service}  ${url}  ${failure ? `FAILED: ${failure}` : `speaks ${vocabulary ?? 'no table that is known'}`}`,
    ...(failure
      ? []
      : [...list('of the catalog, not sent', missing), ...list('sent, in no table', unmapped)]),
  ]);
  return ['Live', ...lines, ''].join('\n');
}
