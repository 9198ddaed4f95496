import type { GatherRequest, Log } from '../core/ports.ts';
import { type AgentConfig, blockOf, blocksOf, type ServiceConfig } from './config/types.ts';
import type { Prepared } from './reload.ts';
import {
  checkRoleSources,
  type RoleSources,
  type RoleSourcesDeps,
  type RoleSourcesOptions,
  startRoleSources,
} from './role-sources.ts';

/** The sources of all roles. */
export interface RolePipeline {
  /**
   * Starts the sources of another configuration beside the running ones, and checks sources whose address a running source still
   * holds. Unchanged sources continue. If it rejects, nothing has changed.
   */
  prepare(config: AgentConfig): Promise<Prepared>;
  /** Prepares and swaps at once. */
  configure(config: AgentConfig): Promise<void>;
  /** Waits until the pages for a gather are fresh, or its deadline has passed. */
  refresh(request: GatherRequest): Promise<void>;
  /** Whether the role's last page failed; undefined for a role that is not scraped. */
  isDown(role: string): boolean | undefined;
  all(): Iterable<RoleSources>;
  stop(): Promise<void>;
}

interface RunningRole {
  readonly key: string;
  readonly sources: RoleSources;
  readonly addresses: readonly string[];
}

const addressesOf = ({ statsd }: ServiceConfig): string[] =>
  [statsd?.listen, statsd?.tcp, statsd?.unix].filter((address) => address !== undefined);

/** Everything that the sources of a role depend on. While it is equal, the sources continue across a reload. */
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

type Wanted = RoleSourcesOptions & { key: string };

/** The services with a scrape target or a statsd listener. */
function wantedOf(config: AgentConfig): Wanted[] {
  const blocks = blocksOf(config);
  return config.services.flatMap((service, place) => {
    if (!service.selected || !(service.scrape || service.statsd)) return [];
    const options = { service, place, block: blockOf(blocks, service.name) };
    return [{ ...options, key: keyOf(options, config) }];
  });
}

/** Pause before a source tries again to bind an address that the previous configuration held. */
const retryMs = 2_000;

export function createRolePipeline(deps: RoleSourcesDeps): RolePipeline {
  let running = new Map<string, RunningRole>();
  const late = createLateStarts(deps);

  const prepare = async (config: AgentConfig): Promise<Prepared> => {
    await late.pause();
    const wanted = wantedOf(config);
    const next = new Map<string, RunningRole>();
    for (const { key, service } of wanted) {
      const known = running.get(service.name);
      if (known?.key === key) next.set(service.name, known);
    }
    const leaving = [...running.values()].filter((one) => next.get(one.sources.service) !== one);
    const held = new Set(leaving.flatMap(({ addresses }) => addresses));
    const changed = wanted.filter(({ service }) => !next.has(service.name));
    const waits = ({ service }: Wanted) => addressesOf(service).some((address) => held.has(address));
    const started: RunningRole[] = [];
    const discard = async () => {
      await stopRoles(started, deps.log);
      late.resume();
    };
    try {
      for (const options of changed.filter(waits)) await checkRoleSources(options, deps);
      for (const options of changed.filter((one) => !waits(one)))
        started.push(await startRole(options, deps));
    } catch (thrown) {
      await discard();
      throw thrown;
    }
    return {
      async swap() {
        await stopRoles(leaving, deps.log);
        for (const one of started) next.set(one.sources.service, one);
        running = next;
        await late.start(changed.filter(waits), next);
      },
      discard,
    };
  };

  return {
    prepare,
    configure: async (config) => (await prepare(config)).swap(),
    async refresh({ takes, deadlineMs }) {
      if (deadlineMs === undefined) return;
      const asked = [...running.values()].filter(({ sources }) =>
        takes({ service: sources.service, relayed: true }),
      );
      await Promise.all(asked.map(({ sources }) => sources.refresh(deadlineMs)));
    },
    isDown(role) {
      const scrape = running.get(role)?.sources.scrape;
      return scrape && !scrape.status().up;
    },
    *all() {
      for (const { sources } of running.values()) yield sources;
    },
    async stop() {
      await late.end();
      await stopRoles([...running.values()], deps.log);
      running = new Map();
    },
  };
}

async function startRole(options: Wanted, deps: RoleSourcesDeps): Promise<RunningRole> {
  const sources = await startRoleSources(options, deps);
  return { key: options.key, sources, addresses: addressesOf(options.service) };
}

async function stopRoles(roles: readonly RunningRole[], log: Log): Promise<void> {
  const stopped = await Promise.allSettled(roles.map(({ sources }) => sources.stop()));
  for (const result of stopped)
    if (result.status === 'rejected')
      log.write('error', 'a source did not stop cleanly', { error: result.reason });
}

/** Sources that could not start in a swap. They are tried again until the next swap. */
interface LateStarts {
  /** Starts the sources that can start, and adds them to `into`; the others are tried again later. */
  start(wanted: readonly Wanted[], into: Map<string, RunningRole>): Promise<void>;
  /** Pauses the retries after the running one has ended. */
  pause(): Promise<void>;
  resume(): void;
  /** Ends the retries for good. */
  end(): Promise<void>;
}

function createLateStarts(deps: RoleSourcesDeps): LateStarts {
  const { clock, log } = deps;
  let late: readonly Wanted[] = [];
  let roles = new Map<string, RunningRole>();
  let cancelRetry = () => {};
  let retrying = Promise.resolve();

  const start: LateStarts['start'] = async (wanted, into) => {
    const failed: Wanted[] = [];
    for (const options of wanted) {
      const { name } = options.service;
      try {
        into.set(name, await startRole(options, deps));
      } catch (error) {
        failed.push(options);
        log.write('error', 'a source cannot start and is tried again', { service: name, retryMs, error });
      }
    }
    late = failed;
    roles = into;
    resume();
  };
  const resume = () => {
    cancelRetry();
    if (late.length > 0)
      cancelRetry = clock.after(retryMs, () => {
        retrying = start(late, roles);
      });
  };

  const pause = async () => {
    cancelRetry();
    await retrying;
    // The retry that was running may have scheduled the next one.
    cancelRetry();
  };

  return {
    start,
    pause,
    resume,
    async end() {
      await pause();
      late = [];
    },
  };
}
