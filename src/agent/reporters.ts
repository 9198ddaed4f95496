import { hostname } from 'node:os';
import type { ReadSecret } from '../core/access.ts';
import type { Clock, Drops, Gather, Log, Stop } from '../core/ports.ts';
import type { HostedFailureReason, PushFailureReason } from '../core/reasons.ts';
import { hasExternalTotals } from '../core/registry-state.ts';
import type { HostedOptions } from '../reporters/hosted/block.ts';
import type { PushOptions } from '../reporters/push/block.ts';
import { type AgentConfig, type Block, blocksOf } from './config/types.ts';
import { version } from './installation.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { State, StateSection } from './state/state.ts';

export interface ReportersDeps {
  state: State;
  self: SelfMetrics;
  /** The section of the state that keeps a block's baseline. */
  section(name: string): StateSection;
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
  log: Log;
}

/** The reporters that send by themselves; pull reporters are endpoints. */
export interface Reporters {
  /** Goes over to another configuration; a block that did not change goes on as it was. */
  configure(config: AgentConfig, gather: Gather): Promise<void>;
  /** Ends with a last report of each. */
  stop(): Promise<void>;
}

/** Sections of the state that the blocks of a configuration keep their baselines in. */
export function reporterSections(config: AgentConfig): string[] {
  return blocksOf(config).map(({ name }) => `push-${name}`);
}

interface Running {
  readonly key: string;
  readonly stop: Stop;
}

interface Start {
  config: AgentConfig;
  gather: Gather;
}

/** What waits in the queues of all blocks, as two numbers. */
function createQueueGauges(self: SelfMetrics) {
  const queues = new Map<string, { bytes: number; oldestMs: number | undefined }>();
  return (block: string, bytes: number, oldestMs: number | undefined) => {
    queues.set(block, { bytes, oldestMs });
    const all = [...queues.values()];
    self.queueBytes.set(all.reduce((sum, queue) => sum + queue.bytes, 0));
    const oldest = Math.min(...all.map((queue) => queue.oldestMs ?? Number.POSITIVE_INFINITY));
    if (Number.isFinite(oldest)) self.queueOldest.set(oldest / 1e3);
    else self.queueOldest.remove();
  };
}

export function createReporters(deps: ReportersDeps): Reporters {
  const { state, self, section, clock } = deps;
  const sinceMs = clock.nowMs();
  let running = new Map<string, Running>();
  const queued = createQueueGauges(self);
  const reported = {
    delivered: () => self.reportLastSuccess.set(clock.nowMs() / 1e3),
    failed: (reason: PushFailureReason | HostedFailureReason) => self.reportFailures.inc({ reason }),
  };

  const startPush = async (
    { name, metrics, shows }: Block,
    options: PushOptions,
    start: Start,
  ): Promise<Stop> => {
    const { createPush } = await import('../reporters/push/push.ts');
    const push = createPush(
      { ...options, block: name, metricsPrefix: metrics.prefix, instance: start.config.instance },
      {
        ...deps,
        takes: ({ service }) => shows(service),
        carriesTotals: hasExternalTotals,
        commit: () => state.commit(),
        sinceMs,
        reported,
      },
    );
    section(push.durable.name).hand(push.durable);
    return push.start(start.gather);
  };

  const startHosted = async (
    { name, metrics, shows }: Block,
    options: HostedOptions,
    start: Start,
  ): Promise<Stop> => {
    const { createHosted } = await import('../reporters/hosted/hosted.ts');
    const { instance, stateDirectory } = start.config;
    const { prefix: metricsPrefix, reportingIntervalMs } = metrics;
    const about = {
      block: name,
      metricsPrefix,
      reportingIntervalMs,
      instance,
      hostName: hostname(),
      version,
      stateDirectory,
    };
    const hosted = createHosted(
      { ...options, ...about },
      {
        ...deps,
        takes: ({ service }) => shows(service),
        reported,
        queued: (bytes, oldestMs) => queued(name, bytes, oldestMs),
      },
    );
    return hosted.start(start.gather);
  };

  const startBlock = async (block: Block, start: Start): Promise<Stop> => {
    const { reporter } = block.metrics;
    if (reporter?.kind === 'pushmetrics') return startPush(block, reporter.options, start);
    if (reporter?.kind === 'hostedmetrics') return startHosted(block, reporter.options, start);
    return async () => {};
  };

  return {
    async configure(config, gather) {
      const next = new Map<string, Running>();
      const blocks = blocksOf(config);
      // Which services have a block of their own decides what the shared one shows.
      const keyOf = ({ metrics }: Block) =>
        JSON.stringify([metrics, config.instance, blocks.map(({ name }) => name)]);
      for (const block of blocks) {
        const key = keyOf(block);
        const known = running.get(block.name);
        if (known?.key === key) next.set(block.name, known);
      }
      const leaving = [...running].filter(([name]) => !next.has(name));
      await Promise.all(leaving.map(([, { stop }]) => stop()));
      running = next;
      for (const block of blocks) {
        if (next.has(block.name)) continue;
        next.set(block.name, { key: keyOf(block), stop: await startBlock(block, { config, gather }) });
      }
    },
    async stop() {
      await Promise.all([...running.values()].map(({ stop }) => stop()));
      running = new Map();
    },
  };
}
