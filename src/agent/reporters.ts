import { readdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { ReadSecret } from '../core/access.ts';
import type { Clock, Drops, Durable, Gather, GatherRequest, Log, Reporter, Stop } from '../core/ports.ts';
import type { HostedFailureReason, PushFailureReason } from '../core/reasons.ts';
import { hasExternalTotals } from '../core/registry/registry-state.ts';
import type { HostedOptions, PushOptions } from '../reporters/block.ts';
import { type AgentConfig, type Block, blocksOf } from './config/types.ts';
import { version } from './installation.ts';
import type { SelfMetrics } from './self-metrics.ts';
import type { State } from './state/state.ts';
import { tracing } from './tracing.ts';

interface ReportersDeps {
  state: State;
  self: SelfMetrics;
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
  log: Log;
}

/** The push reporters (pushmetrics, hostedmetrics); pull reporters are endpoints. */
interface Reporters {
  /** Switches to another configuration; reporters of unchanged blocks continue. */
  configure(config: AgentConfig, gather: Gather): Promise<void>;
  /** The status of each reporter, in the order of the blocks. */
  status(): readonly ReporterStatus[];
  /** Sends a last report from each and stops. */
  stop(): Promise<void>;
}

/** The state of a reporter that sends by itself, for the status page. Times are RFC 3339. */
export interface ReporterStatus {
  block: string;
  kind: 'pushmetrics' | 'hostedmetrics';
  /** The destination; not secret. */
  target: string;
  lastSuccess?: string;
  /** `what`: the error, or what the receiver answered, as one clause without credentials; it contains text from outside. */
  lastFailure?: { reason: PushFailureReason | HostedFailureReason; what: string; at: string };
  /** The time of the first failure since the last success. */
  failingSince?: string;
  failures: number;
  queueBytes?: number;
  queueOldest?: string;
}

interface RunningReporter {
  readonly key: string;
  readonly status: ReporterStatus | undefined;
  readonly stop: Stop;
}

/** Dependencies of a reporter. */
interface BuildDeps {
  commit(): Promise<unknown>;
  /** When the agent started, wall clock, ms. */
  sinceMs: number;
  reported: {
    delivered(): void;
    failed(reason: PushFailureReason | HostedFailureReason, what: string): void;
  };
  queued(block: string, bytes: number, oldestMs: number | undefined): void;
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
  log: Log;
}

async function buildPush(
  { name, metrics, shows }: Block,
  options: PushOptions,
  { instance }: AgentConfig,
  deps: BuildDeps,
) {
  const { createPush } = await import('../reporters/push/push.ts');
  const about = { block: name, metricsPrefix: metrics.prefix, instance };
  const takes: GatherRequest['takes'] = ({ service }) => shows(service);
  return createPush({ ...options, ...about }, { ...deps, takes, hasExternalTotals, tracing });
}

async function buildHosted(
  { name, metrics, shows }: Block,
  options: HostedOptions,
  { instance, stateDirectory }: AgentConfig,
  deps: BuildDeps,
) {
  const { createHosted } = await import('../reporters/hosted/hosted.ts');
  const { prefix: metricsPrefix, reportingIntervalMs } = metrics;
  const queueDirectory = stateDirectory && join(stateDirectory, queueName(name));
  const about = { metricsPrefix, reportingIntervalMs, instance, version, queueDirectory };
  const takes: GatherRequest['takes'] = ({ service }) => shows(service);
  const queued = (bytes: number, oldestMs: number | undefined) => deps.queued(name, bytes, oldestMs);
  return createHosted(
    { ...options, ...about, hostName: hostname() },
    { ...deps, takes, hasExternalTotals, queued, tracing },
  );
}

const queuePrefix = 'hosted-';
/** The directory of a block's queue, in the state directory. */
const queueName = (block: string) => `${queuePrefix}${encodeURIComponent(block)}`;

/** Queues in the state directory that no block sends, with the points that wait in them. */
async function queuesLeft(config: AgentConfig): Promise<{ directory: string; points: number }[]> {
  const { stateDirectory } = config;
  if (stateDirectory === undefined) return [];
  const hosted = blocksOf(config).filter(({ metrics }) => metrics.reporter?.kind === 'hostedmetrics');
  const used = new Set(hosted.map(({ name }) => queueName(name)));
  const names = (await readdir(stateDirectory)).filter(
    (name) => name.startsWith(queuePrefix) && !used.has(name),
  );
  if (names.length === 0) return [];
  const { pointsLeftIn } = await import('../reporters/hosted/queue/queue.ts');
  const left = names.map(async (name) => {
    const directory = join(stateDirectory, name);
    // What cannot be read is no queue of the agent, or was made unreadable by somebody who knows.
    return { directory, points: await pointsLeftIn(directory).catch(() => 0) };
  });
  return (await Promise.all(left)).filter(({ points }) => points > 0);
}

/** Builds the reporter of a block that sends by itself, without starting it; undefined if the block has none. */
async function buildReporter(
  block: Block,
  config: AgentConfig,
  deps: BuildDeps,
): Promise<(Reporter & { durable?: Durable }) | undefined> {
  const { reporter } = block.metrics;
  if (reporter?.kind === 'pushmetrics') return buildPush(block, reporter.options, config, deps);
  if (reporter?.kind === 'hostedmetrics') return buildHosted(block, reporter.options, config, deps);
  return undefined;
}

/** Builds the reporters of a configuration and discards them. Throws what a start would throw. */
export async function checkReporters(
  config: AgentConfig,
  deps: Pick<BuildDeps, 'readSecret' | 'clock' | 'drops' | 'log'>,
): Promise<void> {
  const none = () => {};
  const idle = {
    commit: async () => {},
    sinceMs: 0,
    reported: { delivered: none, failed: none },
    queued: none,
  };
  for (const block of blocksOf(config)) await buildReporter(block, config, { ...deps, ...idle });
}

/** Gauges of what waits in the queues of all blocks, as two numbers. */
function createQueueGauges(self: SelfMetrics) {
  const queues = new Map<string, { bytes: number; oldestMs: number | undefined }>();
  const show = () => {
    const all = [...queues.values()];
    self.queueBytes.set(all.reduce((sum, queue) => sum + queue.bytes, 0));
    const oldest = Math.min(...all.map((queue) => queue.oldestMs ?? Number.POSITIVE_INFINITY));
    if (Number.isFinite(oldest)) self.queueOldest.set(oldest / 1e3);
    else self.queueOldest.remove();
  };
  return {
    queued(block: string, bytes: number, oldestMs: number | undefined) {
      queues.set(block, { bytes, oldestMs });
      show();
    },
    /** Must be called when a block has no queue any longer. */
    ended(block: string) {
      if (queues.delete(block)) show();
    },
  };
}

/** The status of a block's reporter, updated by its callbacks; undefined for a reporter that does not send. */
function createStatus({ name: block, metrics: { reporter } }: Block, clock: Clock) {
  if (reporter === undefined || reporter.kind === 'pullmetrics') return undefined;
  const { kind, options } = reporter;
  const target = 'hostPort' in options ? options.hostPort : new URL(options.endpoint).origin;
  const status: ReporterStatus = { block, kind, target, failures: 0 };
  const now = () => new Date(clock.nowMs()).toISOString();
  return {
    status,
    delivered() {
      status.lastSuccess = now();
      delete status.failingSince;
    },
    failed(reason: PushFailureReason | HostedFailureReason, what: string) {
      status.failures++;
      status.lastFailure = { reason, what, at: now() };
      status.failingSince ??= status.lastFailure.at;
    },
    queued(bytes: number, oldestMs: number | undefined) {
      status.queueBytes = bytes;
      status.queueOldest = oldestMs === undefined ? undefined : new Date(oldestMs).toISOString();
    },
  };
}

export function createReporters(deps: ReportersDeps): Reporters {
  const { state, self, readSecret, clock, drops, log } = deps;
  let running = new Map<string, RunningReporter>();
  const queueGauges = createQueueGauges(self);
  const sinceMs = clock.nowMs();

  const startBlock = async (
    block: Block,
    config: AgentConfig,
    gather: Gather,
  ): Promise<Omit<RunningReporter, 'key'>> => {
    const kept = createStatus(block, clock);
    const reporter = await buildReporter(block, config, {
      commit: state.commit,
      sinceMs,
      readSecret,
      clock,
      drops,
      log,
      queued(name, bytes, oldestMs) {
        queueGauges.queued(name, bytes, oldestMs);
        kept?.queued(bytes, oldestMs);
      },
      reported: {
        delivered() {
          self.reportLastSuccess.set(clock.nowMs() / 1e3);
          kept?.delivered();
        },
        failed(reason, what) {
          self.reportFailures.inc({ reason });
          kept?.failed(reason, what);
        },
      },
    });
    if (!reporter) return { stop: async () => {}, status: undefined };
    if (reporter.durable) state.section(reporter.durable.name).assign(reporter.durable);
    return { stop: await reporter.start(gather), status: kept?.status };
  };
  /** The queues that nobody sent at the last change of the configuration. */
  let leftBefore = new Set<string>();
  /** Warns of each queue that nobody sends any more: a block may have got another reporter while its receiver was down. */
  const tellLeft = async (config: AgentConfig) => {
    const left = await queuesLeft(config);
    const msg =
      'points that were not delivered stay on disk, because their block has no hostedmetrics any more; configure it again, or remove the directory';
    for (const queue of left) if (!leftBefore.has(queue.directory)) log.write('warn', msg, { ...queue });
    leftBefore = new Set(left.map(({ directory }) => directory));
  };
  const stopAll = async (ones: Iterable<RunningReporter>) => {
    const stopped = await Promise.allSettled([...ones].map(({ stop }) => stop()));
    for (const result of stopped)
      if (result.status === 'rejected')
        log.write('error', 'a reporter did not stop cleanly', { error: result.reason });
  };

  return {
    async configure(config, gather) {
      const next = new Map<string, RunningReporter>();
      const blocks = blocksOf(config);
      // The shared block shows all services without a block of their own, so it depends on which services have their own block.
      const keyOf = ({ metrics }: Block) =>
        JSON.stringify([metrics, config.instance, blocks.map(({ name }) => name)]);
      for (const block of blocks) {
        const known = running.get(block.name);
        if (known?.key === keyOf(block)) next.set(block.name, known);
      }
      const leaving = [...running].filter(([name]) => !next.has(name));
      running = next;
      await stopAll(leaving.map(([, one]) => one));
      for (const [name] of leaving) queueGauges.ended(name);
      for (const block of blocks) {
        if (next.has(block.name)) continue;
        next.set(block.name, { key: keyOf(block), ...(await startBlock(block, config, gather)) });
      }
      // Without a reporter that sends, no delivery is due, and the time of an old delivery would look like an outage.
      if (![...next.values()].some(({ status }) => status)) self.reportLastSuccess.remove();
      // A directory that cannot be listed is reported by the state.
      await tellLeft(config).catch(() => {});
    },
    status: () => [...running.values()].flatMap(({ status }) => status ?? []),
    async stop() {
      await stopAll(running.values());
      running = new Map();
    },
  };
}
