import { join } from 'node:path';
import type { ReadSecret } from '../../core/access.ts';
import { waitAtMost } from '../../core/clock.ts';
import { sanitizeName } from '../../core/labels.ts';
import type { Clock, Drops, Gather, GatherRequest, Log, Reporter, Stop } from '../../core/ports.ts';
import { startRhythm } from '../pacing.ts';
import type { HostedOptions } from './block.ts';
import { createBackoff, startDelivery } from './delivery.ts';
import { createSender } from './http-client.ts';
import { createOtlp } from './otlp/otlp.ts';
import { createOutcomes, createPost, type Reported } from './post.ts';
import { createRequestLimits, type Origin, type Protocol, type RequestLimits } from './protocol.ts';
import { createQueue } from './queue/queue.ts';
import { createRemoteWrite } from './remote-write/remote-write.ts';
import { createPresence } from './vanished.ts';

export interface HostedReporterOptions extends HostedOptions {
  /** The block's place in the configuration; its queue is the folder `hosted-<block>` of the state directory. */
  block: string;
  /** The block's own prefix: `p` makes `p_name`. */
  metricsPrefix: string;
  reportingIntervalMs: number;
  /** Value of `instance`. */
  instance: string;
  /** OTLP's `host.name`. */
  hostName: string;
  /** The agent's version. */
  version: string;
  /** Where the queue is kept; undefined: in memory. */
  stateDirectory: string | undefined;
}

export interface HostedDeps {
  /** Whether a series is reported here. */
  takes: GatherRequest['takes'];
  reported: Reported;
  /** What waits: bytes, and the wall clock, ms, of the oldest batch; undefined when nothing waits. */
  queued(bytes: number, oldestMs: number | undefined): void;
  readSecret: ReadSecret;
  clock: Clock;
  drops: Drops;
  log: Log;
  /** Uniform in [0, 1). */
  random?: () => number;
}

/** What a last delivery may take: the whole agent stops within 5 s. */
const lastDeliveryMs = 3_000;

const protocols: Readonly<
  Record<HostedOptions['protocol'], (origin: Origin, limits: RequestLimits) => Protocol>
> = { otlp: createOtlp, remotewrite: createRemoteWrite };

/**
 * The hosted reporter (`hostedmetrics`): every `reportingIntervalMs` a picture of everything, as batches, into a
 * queue on disk and from there to the platform, over OTLP/HTTP or Prometheus remote write.
 *
 * Batches arrive at least once and in order per series, through an outage as long as the queue's bounds and
 * through a restart of the agent. Two reporters must not share a block's queue: the old one has to be stopped
 * before a new one starts. A receiver that has changed since gets what still waits; what waits in another
 * protocol's form is dropped and counted.
 */
export function createHosted(options: HostedReporterOptions, deps: HostedDeps): Reporter {
  const { clock, drops, random = Math.random } = deps;
  const { instance, hostName, version, stateDirectory, block } = options;
  const log = deps.log.named('hosted');
  const outcomes = createOutcomes(options.endpoint, { reported: deps.reported, log });
  const prefix = options.metricsPrefix ? sanitizeName(`${options.metricsPrefix}_`) : '';
  const limits = createRequestLimits();
  const protocol = protocols[options.protocol]({ instance, hostName, version, prefix }, limits);
  const presence = createPresence();
  const trouble = createDiskTrouble({ clock, log, count: () => deps.reported.failed('queue_disk') });

  const startQueue = async () => {
    const directory =
      stateDirectory === undefined ? undefined : join(stateDirectory, `hosted-${encodeURIComponent(block)}`);
    const { maxBytes, maxAgeMs } = options.queue;
    const queue = createQueue(
      { directory, maxBytes, maxAgeMs },
      { clock, drops, diskFailed: trouble.failed, diskWorks: trouble.works, changed: deps.queued },
    );
    await queue.open();
    return queue;
  };

  return {
    async start(gather: Gather): Promise<Stop> {
      const queue = await startQueue();
      const sender = createSender(options, { clock, readSecret: deps.readSecret, version });
      const post = createPost({ protocol, limits, sender, outcomes, drops, clock });
      const delivery = startDelivery({
        queue,
        post,
        split: protocol.split,
        backoff: createBackoff(random),
        clock,
        drops,
      });

      const enqueue = async (): Promise<void> => {
        let timeMs = Math.floor(clock.nowMs());
        const frozen = () => {
          timeMs = Math.floor(clock.nowMs());
        };
        const view = await gather({ takes: deps.takes, frozen });
        try {
          const vanished = await presence.vanished(view);
          for await (const batch of protocol.encode({ view, vanished, timeMs })) {
            await queue.append(batch);
            delivery.wake();
          }
        } finally {
          view.release();
        }
      };
      const report = async (): Promise<void> => {
        try {
          await enqueue();
        } catch (error) {
          outcomes.failed('no_view', error);
        }
      };

      const end = startRhythm(options.reportingIntervalMs, clock, report);
      const finish = async (): Promise<void> => {
        await end();
        await report();
        await delivery.end();
      };
      return async () => {
        await waitAtMost(lastDeliveryMs, clock, finish());
        await sender.close();
        const lost = await queue.close();
        if (lost > 0) log.write('warn', 'points that waited in memory are lost', { points: lost });
      };
    },
  };
}

/** Disk trouble of the queue: told once per period while it lasts, not with each batch. */
export interface DiskTrouble {
  failed(error: unknown): void;
  works(): void;
}

const periodMs = 60_000;

export function createDiskTrouble({
  clock,
  log,
  count,
}: {
  clock: Clock;
  log: Log;
  count(): void;
}): DiskTrouble {
  let toldMs: number | undefined;
  return {
    failed(error) {
      const nowMs = clock.monotonicMs();
      if (toldMs !== undefined && nowMs - toldMs < periodMs) return;
      if (toldMs === undefined)
        log.write('error', 'the queue cannot be kept on disk, memory is used', { error });
      toldMs = nowMs;
      count();
    },
    works() {
      if (toldMs !== undefined) log.write('info', 'the queue is kept on disk again');
      toldMs = undefined;
    },
  };
}
