import { createDurableStore } from '../core/durable-store.ts';
import { AgentError, faultLine } from '../core/errors.ts';
import type { Clock, Drops } from '../core/ports.ts';
import { createRegistry } from '../core/registry.ts';
import { createListener } from '../reporters/listen/listener.ts';
import { createListeners } from '../reporters/listen/shared-listeners.ts';
import { createHealth } from './admin/status.ts';
import type { Loaded, ReadyConfig } from './config/types.ts';
import { watchConfiguration } from './config-watch.ts';
import { createLog, createLogSwitch } from './own-log.ts';
import { createPipeline, registrySettings } from './pipeline.ts';
import { createReadSecret } from './read-secret.ts';
import { createReloads, type Reloads } from './reload.ts';
import { reporterSections } from './reporters.ts';
import { createSelfMetrics } from './self-metrics.ts';
import { createState, createStateSection, type StateSection } from './state/state.ts';

export interface AgentDeps {
  clock: Clock;
  /** Reads the configuration again; throws on what cannot run. */
  load(): Promise<Loaded>;
}

export interface Agent {
  /** Reads the configuration again and swaps it in; a bad one is logged and changes nothing. */
  reload(): void;
  /** Commits, ends what is under way, and gives everything back. */
  stop(): Promise<void>;
}

/** The agent's own log, whose place and level a reload may change. */
function openLog(first: ReadyConfig, drops: () => Drops | undefined) {
  let opened = createLog(first.config.log, drops);
  const { log, turn } = createLogSwitch(opened.log);
  return {
    log,
    prepare: ({ config }: ReadyConfig) => createLog(config.log, drops),
    take(next: typeof opened) {
      turn(next.log);
      opened.close();
      opened = next;
    },
    flush: () => opened.flush(),
  };
}

/** Everything of the agent that outlives a reload, with the state restored. */
async function openParts(first: ReadyConfig, clock: Clock, reloadError: () => string | undefined) {
  let drops: Drops | undefined;
  const ownLog = openLog(first, () => drops);
  const { log } = ownLog;
  const self = createSelfMetrics();
  const durable = createDurableStore();
  const sections = new Map(
    ['logs', 'roles', 'probes', ...reporterSections(first.config)].map((name) => [
      name,
      createStateSection(name),
    ]),
  );
  const durables = [...sections.values()];
  /** A reload may bring blocks that no section was made for. */
  const section = (name: string): StateSection => {
    const known = sections.get(name);
    if (known) return known;
    const opened = createStateSection(name);
    sections.set(name, opened);
    durables.push(opened);
    return opened;
  };
  const { stateDirectory: directory } = first.config;
  const stateDeps = { values: durable, durables, clock, log };
  const state = createState({ directory, fsync: first.config.stateFsync }, stateDeps);
  const health = createHealth(() => state.status().degraded);
  await state.load();
  const registry = createRegistry({ ...registrySettings(first.config), durable }, { clock });
  drops = registry.drops;
  const readSecret = createReadSecret(process.env);
  const shared = { registry, state, self, health, section, readSecret, clock, log, drops, reloadError };
  const listeners = createListeners((options) => createListener(options, shared));
  return { ...shared, ownLog, work: createPipeline({ ...shared, listeners }) };
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

/**
 * Puts the agent together and starts it (DESIGN §3, Start): lock and snapshot, listeners that already answer
 * for health, sources, first commit, reporters. Throws `state_locked`, `state_unreadable`, `address_in_use`,
 * `listen_failed` or `log_unwritable`; nothing is left running then.
 */
export async function startAgent(first: ReadyConfig, { clock, load }: AgentDeps): Promise<Agent> {
  let reloads: Reloads | undefined;
  const parts = await openParts(first, clock, () => reloads?.error);
  const { log, work, state, health, self, ownLog } = parts;
  let unwatch = () => {};
  const giveBack = async () => {
    unwatch();
    await reloads?.idle();
    await work.stop();
    await state.close();
    self.stop();
    ownLog.flush();
  };

  try {
    await work.start(first);
  } catch (thrown) {
    await giveBack();
    throw thrown;
  }
  reloads = createReloads({
    ...parts,
    load,
    async take(config) {
      checkUnchanged(first, config);
      const nextLog = ownLog.prepare(config);
      await work.swap(config);
      ownLog.take(nextLog);
      watch(config);
    },
  });
  const { ask } = reloads;
  const watch = ({ files }: ReadyConfig) => {
    unwatch();
    unwatch = watchConfiguration(files, clock, ask);
  };
  watch(first);
  for (const warning of [...first.warnings, ...first.findings]) log.write('warn', faultLine(warning));
  health.enter('ready');
  log.write('info', 'ready', { roles: first.config.roles, instance: first.config.instance });

  return {
    reload: ask,
    async stop() {
      health.enter('stopping');
      log.write('info', 'stopping');
      await giveBack();
    },
  };
}
