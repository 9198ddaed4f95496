import { AgentError, faultLine } from '../core/errors.ts';
import type { Clock, Drops } from '../core/ports.ts';
import { createDurableStore } from '../core/registry/durable-store.ts';
import { createRegistry } from '../core/registry/registry.ts';
import { createListener, createListeners } from '../reporters/listen/listener.ts';
import { createHealth } from './admin/health.ts';
import type { Loaded, LogOptions, ReadyConfig } from './config/types.ts';
import { createEventLoopDelays } from './event-loop-lag.ts';
import { memoryWarnings, registrySettings } from './intakes.ts';
import { createLog, createLogSwitch } from './own-log.ts';
import { createPipeline, type Pipeline } from './pipeline.ts';
import { createReadSecret } from './read-secret.ts';
import { createReloads, type Prepared, prepareAll, type Reloads, watchConfiguration } from './reload.ts';
import { createSelfMetrics } from './self-metrics.ts';
import { createState, isUnreadable } from './state/state.ts';

interface AgentDeps {
  clock: Clock;
  /** Reads the configuration again; throws if it cannot run. */
  load(): Promise<Loaded>;
}

export interface Agent {
  /** Reads the configuration again and replaces the running one. An invalid configuration is logged and changes nothing. */
  reload(): void;
  /** Ends all running work, commits, and releases everything. */
  stop(): Promise<void>;
}

interface OpenDeps {
  clock: Clock;
  /** Snapshots that could not be read. */
  ignored: ReadonlySet<string>;
  reloadError(): string | undefined;
}

/** The agent's own log, whose destination and level a reload may change. */
function openLog(options: LogOptions, drops: () => Drops | undefined) {
  let opened = createLog(options, drops);
  const { log, turn } = createLogSwitch(opened.log);
  return {
    log,
    prepare(next: LogOptions): Prepared {
      const prepared = createLog(next, drops);
      return {
        swap() {
          const before = opened;
          opened = prepared;
          turn(prepared.log);
          before.close();
        },
        discard: prepared.close,
      };
    },
    close: () => opened.close(),
  };
}

/** All parts of the agent that outlive a reload, with the state restored. */
async function openParts({ config }: ReadyConfig, { clock: given, ignored, reloadError }: OpenDeps) {
  let drops: Drops | undefined;
  const ownLog = openLog(config.log, () => drops);
  const { log } = ownLog;
  const delays = createEventLoopDelays();
  const clock = delays.watch(given);
  const self = createSelfMetrics(delays);
  const durable = createDurableStore();
  const options = { directory: config.stateDirectory, fsync: config.stateFsync, ignored };
  const state = createState(options, { values: durable, clock, log });
  try {
    await state.load();
  } catch (thrown) {
    ownLog.close();
    throw thrown;
  }
  const registry = createRegistry({ ...registrySettings(config), durable }, { clock });
  drops = registry.drops;
  const health = createHealth(() => state.status().degraded);
  const readSecret = createReadSecret(process.env);
  const shared = { registry, state, self, health, readSecret, clock, log, drops, reloadError };
  const listeners = createListeners((of) => createListener(of, shared));
  return { ...shared, ownLog, listeners, stopDelays: delays.start() };
}

function checkUnchanged({ config: before }: ReadyConfig, { config }: ReadyConfig): void {
  if (config.stateDirectory === before.stateDirectory) return;
  const fault = {
    where: 'stateDirectory',
    what: 'cannot change while the agent runs',
    got: config.stateDirectory,
  };
  throw new AgentError('config_invalid', { ...fault, allowed: 'restart the agent' });
}

/** Starts once. A snapshot that cannot be read is set aside and added to `ignored`, and the error is thrown. */
async function startOnce(
  first: ReadyConfig,
  { clock, load }: AgentDeps,
  ignored: Set<string>,
): Promise<Agent> {
  let reloads: Reloads | undefined;
  const parts = await openParts(first, { clock, ignored, reloadError: () => reloads?.error });
  const { log, state, health, ownLog, stopDelays } = parts;
  let pipeline: Pipeline | undefined;
  let unwatch = () => {};
  const watch = ({ watched, config }: Loaded) => {
    unwatch();
    unwatch = watchConfiguration(watched, clock, () => reloads?.ask());
    for (const fault of config ? memoryWarnings(config) : []) log.write('warn', faultLine(fault));
  };

  try {
    pipeline = createPipeline(parts);
    await pipeline.start(first);
  } catch (thrown) {
    await pipeline?.stop();
    stopDelays();
    if (isUnreadable(thrown)) ignored.add((await state.refuse(thrown)) ?? '');
    else await state.close();
    ownLog.close();
    throw thrown;
  }
  const { prepare } = pipeline;
  state.started();
  reloads = createReloads({
    self: parts.self,
    clock,
    log,
    load,
    loaded: watch,
    prepare: (next) =>
      prepareAll([
        async () => void checkUnchanged(first, next),
        async () => ownLog.prepare(next.config.log),
        ...prepare(next),
      ]),
  });
  const { ask, stop: stopReloads } = reloads;
  watch(first);
  for (const warning of [...first.warnings, ...first.findings]) log.write('warn', faultLine(warning));
  health.enter('ready');
  log.write('info', 'ready', { roles: first.config.roles, instance: first.config.instance });

  return {
    reload: ask,
    async stop() {
      health.enter('stopping');
      log.write('info', 'stopping');
      unwatch();
      await stopReloads();
      await pipeline.stop();
      await state.commit();
      await state.close();
      stopDelays();
      ownLog.close();
    },
  };
}

/** The maximum number of starts: one for each of the two snapshots, and one without a snapshot. */
const attempts = 3;

/**
 * Assembles the agent and starts it (docs/internals.md, Commit before expose): lock and snapshot, listeners that already answer
 * for health, sources, first commit, reporters. A snapshot that cannot be read, for example one of a later version, is set aside,
 * and the start continues with the previous snapshot, or without one. Throws `state_locked`, `address_in_use`, `listen_failed` or
 * `log_unwritable`; then nothing is left running.
 */
export async function startAgent(first: ReadyConfig, deps: AgentDeps): Promise<Agent> {
  const ignored = new Set<string>();
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(first, deps, ignored);
    } catch (thrown) {
      if (!isUnreadable(thrown) || attempt === attempts) throw thrown;
    }
  }
}
