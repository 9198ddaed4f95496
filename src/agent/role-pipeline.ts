import { addressesConflict, parseAddress } from '../core/address.ts';
import type { GatherRequest, Log } from '../core/ports.ts';
import { digestOf, machineAddresses } from './config/environment.ts';
import { type AgentConfig, blockOf, blocksOf, type ServiceConfig } from './config/types.ts';
import type { Prepared } from './reload.ts';
import {
  checkRoleSources,
  type RoleSources,
  type RoleSourcesDeps,
  type RoleSourcesOptions,
  silent,
  startRoleSources,
} from './role-sources.ts';

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

/** A running source: the page of a role, or its datagrams. */
interface RunningSource {
  readonly id: string;
  readonly key: string;
  readonly sources: RoleSources;
  readonly addresses: readonly string[];
}

const addressesOf = ({ statsd }: ServiceConfig): string[] =>
  [statsd?.listen, statsd?.tcp, statsd?.unix].filter((address) => address !== undefined);

/** One source that a configuration wants. */
type Wanted = RoleSourcesOptions & {
  /** What identifies it across reloads. */
  id: string;
  /** Everything that it depends on. While it is equal, the source continues across a reload. */
  key: string;
};

/**
 * The page and the datagrams of each service. They are separate, and depend on nothing that they do not use: a source that starts
 * anew begins its totals at 0 and loses the datagrams of that moment.
 */
function wantedOf(config: AgentConfig): Wanted[] {
  const blocks = blocksOf(config);
  const names = config.services.map(({ name }) => name);
  const limitsAndNames = digestOf(JSON.stringify([config.limits, names]));
  return config.services.flatMap((service, place) => {
    if (!service.selected) return [];
    const { scrape, statsd, vocabulary } = service;
    const block = blockOf(blocks, service.name);
    const { reporter, tags } = block.metrics;
    const pull = reporter?.kind === 'pullmetrics' ? reporter.options : undefined;
    const common = [vocabulary, place, tags, limitsAndNames];
    const timers = [pull?.timerType, pull?.defaultHistogramBuckets];
    const want = (id: string, part: ServiceConfig, ...own: unknown[]): Wanted => ({
      service: part,
      place,
      block,
      id: `${id} ${service.name}`,
      key: JSON.stringify([common, own]),
    });
    return [
      // The source that binds addresses comes first, because it can fail to start.
      ...(statsd ? [want('statsd', { ...service, scrape: undefined }, statsd, timers)] : []),
      ...(scrape ? [want('scrape', { ...service, statsd: undefined }, scrape)] : []),
    ];
  });
}

/** Whether an address cannot be bound while another address is in use. */
function conflictsWith(one: string, other: string, localHosts: ReadonlySet<string>): boolean {
  const [first, second] = [parseAddress(one), parseAddress(other)];
  if (!first || !second) return one === other;
  return addressesConflict(first, second, localHosts);
}

/** Pause before a source tries again to bind an address that the previous configuration held. */
const retryMs = 2_000;

export function createRolePipeline(deps: RoleSourcesDeps): RolePipeline {
  let running = new Map<string, RunningSource>();
  const late = createLateStarts(deps);

  const prepare = async (config: AgentConfig): Promise<Prepared> => {
    await late.pause();
    const wanted = wantedOf(config);
    const next = new Map<string, RunningSource>();
    for (const { id, key } of wanted) {
      const known = running.get(id);
      if (known?.key === key) next.set(id, known);
    }
    const leaving = [...running.values()].filter((one) => next.get(one.id) !== one);
    const held = leaving.flatMap(({ addresses }) => addresses);
    const localHosts = machineAddresses();
    const changed = wanted.filter(({ id }) => !next.has(id));
    const isHeld = (address: string) => held.some((one) => conflictsWith(address, one, localHosts));
    const waits = ({ service }: Wanted) => addressesOf(service).some(isHeld);
    const started: RunningSource[] = [];
    const discard = async () => {
      await stopSources(started, deps.log);
      late.resume();
    };
    try {
      for (const options of changed.filter(waits)) {
        await checkRoleSources(options, deps);
        await tryAddresses(options, deps, (address) => !isHeld(address));
      }
      for (const options of changed.filter((one) => !waits(one)))
        started.push(await startSource(options, deps));
    } catch (thrown) {
      await discard();
      throw thrown;
    }
    return {
      async swap() {
        await stopSources(leaving, deps.log);
        for (const one of started) next.set(one.id, one);
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
      const scrape = running.get(`scrape ${role}`)?.sources.scrape;
      return scrape && !scrape.status().up;
    },
    *all() {
      for (const { sources } of running.values()) yield sources;
    },
    async stop() {
      await late.end();
      await stopSources([...running.values()], deps.log);
      running = new Map();
    },
  };
}

async function startSource(options: Wanted, deps: RoleSourcesDeps): Promise<RunningSource> {
  const { id, key, service } = options;
  const sources = await startRoleSources(options, deps);
  return { id, key, sources, addresses: addressesOf(service) };
}

/** Listens for a moment on those addresses of a source that are free. Throws what listening throws. */
async function tryAddresses(
  { service, ...options }: Wanted,
  deps: RoleSourcesDeps,
  isFree: (address: string) => boolean,
): Promise<void> {
  const free = (address: string | undefined) => (address && isFree(address) ? address : undefined);
  const { listen, tcp, unix, ...rest } = service.statsd!;
  const statsd = { ...rest, listen: free(listen), tcp: free(tcp), unix: free(unix) };
  if (!(statsd.listen ?? statsd.tcp ?? statsd.unix)) return;
  const trial = await startRoleSources(
    { ...options, service: { ...service, statsd } },
    { ...deps, log: silent },
  );
  await trial.stop();
}

async function stopSources(running: readonly RunningSource[], log: Log): Promise<void> {
  const stopped = await Promise.allSettled(running.map(({ sources }) => sources.stop()));
  for (const result of stopped)
    if (result.status === 'rejected')
      log.write('error', 'a source did not stop cleanly', { error: result.reason });
}

/** Sources that could not start in a swap. They are tried again until the next swap. */
interface LateStarts {
  /** Starts the sources that can start, and adds them to `into`; the others are tried again later. */
  start(wanted: readonly Wanted[], into: Map<string, RunningSource>): Promise<void>;
  /** Pauses the retries after the running one has ended. */
  pause(): Promise<void>;
  resume(): void;
  /** Ends the retries for good. */
  end(): Promise<void>;
}

function createLateStarts(deps: RoleSourcesDeps): LateStarts {
  const { clock, log } = deps;
  let late: readonly Wanted[] = [];
  let into = new Map<string, RunningSource>();
  let cancelRetry = () => {};
  let retrying = Promise.resolve();

  const start: LateStarts['start'] = async (wanted, running) => {
    const failed: Wanted[] = [];
    for (const options of wanted) {
      const { name } = options.service;
      try {
        running.set(options.id, await startSource(options, deps));
      } catch (error) {
        failed.push(options);
        log.write('error', 'a source cannot start and is tried again', { service: name, retryMs, error });
      }
    }
    late = failed;
    into = running;
    resume();
  };
  const resume = () => {
    cancelRetry();
    if (late.length > 0)
      cancelRetry = clock.after(retryMs, () => {
        retrying = start(late, into);
      });
  };

  const pause = async () => {
    cancelRetry();
    await retrying;
    // The retry that was running may have scheduled the next retry.
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
