import type { GatherRequest } from '../core/ports.ts';
import { blockOf, blocksOf } from './blocks.ts';
import type { AgentConfig, ServiceConfig } from './config/types.ts';
import { type Relay, type RelayDeps, type RelayOptions, startRelay } from './relay.ts';
import { checkStreamTls } from './stream-tls.ts';

/** Everything that roles send themselves. */
export interface Relays {
  /**
   * Goes over to another configuration. What did not change goes on as it was. Rejects where a new address
   * cannot be had, with nothing changed, unless that address is one the old configuration held.
   */
  configure(config: AgentConfig): Promise<void>;
  /** Sees to it that the pages of the services a gather takes are fresh, or missed its deadline. */
  refresh(request: GatherRequest): Promise<void>;
  /** Whether the role's last page failed; undefined for one that is not scraped. */
  isDown(role: string): boolean | undefined;
  all(): Iterable<Relay>;
  stop(): Promise<void>;
}

interface Running {
  readonly key: string;
  readonly relay: Relay;
  readonly addresses: readonly string[];
}

const addressesOf = ({ statsd }: ServiceConfig): string[] =>
  [statsd?.listen, statsd?.tcp, statsd?.unix].filter((address) => address !== undefined);

/** All that a relay depends on; as long as it is the same, so is the relay. */
function keyOf({ service, block, place }: RelayOptions, config: AgentConfig): string {
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

export function createRelays(deps: RelayDeps): Relays {
  let running = new Map<string, Running>();

  const wantedOf = (config: AgentConfig): (RelayOptions & { key: string })[] => {
    const blocks = blocksOf(config);
    return config.services.flatMap((service, place) => {
      if (!service.selected || !(service.scrape || service.statsd)) return [];
      const options = { service, place, block: blockOf(blocks, service.name) };
      return [{ ...options, key: keyOf(options, config) }];
    });
  };
  const start = async (options: RelayOptions & { key: string }): Promise<Running> => ({
    key: options.key,
    relay: await startRelay(options, deps),
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
