import type { OpenIntake } from '../core/intake.ts';
import type { Registry } from '../core/registry.ts';
import { blockOf, blocksOf } from './blocks.ts';
import type { AgentConfig } from './config/types.ts';
import { ranksPerService } from './relay.ts';

/** The intakes of one configuration. They end together; durable series stay in the state. */
export interface Intakes {
  /** What is derived from a service's log bytes; `unknown` is the service of lines that name none. */
  logs(service: string): OpenIntake;
  /** What the agent finds out about a service now, such as how far behind its logs are; `''`: about no service. */
  about(service: string): OpenIntake;
  /** Totals about a service, or none, that somebody else keeps, such as a store. */
  kept(service: string): OpenIntake;
  /** What happens to a service, or to none, and is counted once across restarts. */
  events(service: string): OpenIntake;
  /** The agent's own instruments. */
  self: OpenIntake;
  close(): void;
}

const purposes = {
  logs: { component: 'logs', store: 'durable', received: true },
  about: { component: 'probes', store: 'immediate', received: false },
  kept: { component: 'probes', store: 'immediate', received: false, carried: true },
  events: { component: 'probes', store: 'durable', received: false },
} as const;

/** Opens an intake per service and purpose when it is first asked for. */
export function openIntakes(registry: Registry, config: AgentConfig): Intakes {
  const blocks = blocksOf(config);
  const open = new Map<string, OpenIntake>();
  const intake = (purpose: keyof typeof purposes, service: string): OpenIntake => {
    const key = `${purpose} ${service}`;
    const known = open.get(key);
    if (known) return known;
    const place = config.services.findIndex((candidate) => candidate.name === service);
    const opened = registry.intake({
      service,
      relayed: false,
      // Lines without a role come last: what a role sends under its own name wins.
      rank: (place < 0 ? config.services.length : place) * ranksPerService,
      globalTags: blockOf(blocks, service).metrics.tags,
      tagService: true,
      ...purposes[purpose],
      store: registry[purposes[purpose].store],
    });
    open.set(key, opened);
    return opened;
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
    // prom-client keeps them; after a reload they go on in another intake.
    carried: true,
  });
  return {
    logs: (service) => intake('logs', service),
    about: (service) => intake('about', service),
    kept: (service) => intake('kept', service),
    events: (service) => intake('events', service),
    self,
    close() {
      for (const each of open.values()) each.close();
      self.close();
    },
  };
}
