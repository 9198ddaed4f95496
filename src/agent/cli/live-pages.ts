import { systemClock } from '../../core/clock.ts';
import type { Log } from '../../core/ports.ts';
import { createRegistry } from '../../core/registry.ts';
import type { Scrape, ScrapeResult } from '../../sources/scrape/source.ts';
import { readVocabularies } from '../../sources/vocabularies.ts';
import { blockOf, blocksOf } from '../blocks.ts';
import type { AgentConfig, ServiceConfig } from '../config/types.ts';
import { createReadSecret } from '../read-secret.ts';
import { startRelay } from '../relay.ts';
import { shippedFolder } from '../shipped.ts';
import type { Io } from './io.ts';

/** A command prints what it finds; a log beside that would say it twice. */
export const silent: Log = { write() {}, named: () => silent };

/** One page of one role, shown to nobody. */
export interface LivePage {
  service: ServiceConfig;
  /** Over once it is closed. */
  scrape: Scrape;
  result: ScrapeResult;
  close(): Promise<void>;
}

/** Fetches every page that the configuration names, once. */
export async function openLivePages(config: AgentConfig, io: Io): Promise<LivePage[]> {
  const vocabularies = await readVocabularies(shippedFolder('vocabularies'));
  const blocks = blocksOf(config);
  const scraped = config.services.flatMap((service, place) =>
    service.selected && service.scrape ? [{ service, place }] : [],
  );
  return Promise.all(
    scraped.map(async ({ service, place }): Promise<LivePage> => {
      const relay = await startRelay(
        { service: { ...service, statsd: undefined }, block: blockOf(blocks, service.name), place },
        {
          registry: createRegistry({ limits: config.limits }, { clock: systemClock }),
          vocabularies,
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
