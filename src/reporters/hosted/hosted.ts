import { createHash } from 'node:crypto';
import type { ClientAuth, ReadSecret } from '../../core/access.ts';
import { runEvery, waitAtMost } from '../../core/clock.ts';
import { errorText } from '../../core/errors.ts';
import { createRedaction } from '../../core/known-secrets.ts';
import type { FamilyView, SeriesView, View } from '../../core/model.ts';
import type { Clock, Drops, Gather, GatherRequest, Log, Reporter, Stop, Tracing } from '../../core/ports.ts';
import { urlSecrets } from '../../core/redacted.ts';
import { sanitizeName } from '../../core/registry/labels.ts';
import { createSeriesSlice } from '../../core/slices.ts';
import { isHeaderText } from '../../core/text-formats.ts';
import type { HostedOptions } from '../block.ts';
import { createBackoff, startDelivery } from './delivery.ts';
import { createHttpClient } from './http-client.ts';
import { createOtlp } from './otlp/otlp.ts';
import { createOutcomes, createPost, type ReportMetrics } from './post.ts';
import {
  createRequestLimits,
  type Origin,
  type Protocol,
  type Report,
  type RequestLimits,
  type VanishedSeries,
} from './protocol.ts';
import { createQueue } from './queue/queue.ts';
import { createRemoteWrite } from './remote-write/remote-write.ts';

export interface HostedReporterOptions extends HostedOptions {
  /** The block's own prefix: `p` makes `p_name`. */
  metricsPrefix: string;
  reportingIntervalMs: number;
  /** The value of `instance`. */
  instance: string;
  /** The value of OTLP's `host.name`. */
  hostName: string;
  /** The agent's version. */
  version: string;
  /** If undefined, the queue is in memory. */
  queueDirectory: string | undefined;
}

export interface HostedDeps {
  /** Selects the series of this block. */
  takes: GatherRequest['takes'];
  /** See `Origin.hasExternalTotals`. */
  hasExternalTotals(series: SeriesView): boolean;
  reported: ReportMetrics;
  /**
   * Called with the number of queued bytes, and the wall-clock time, ms, of the oldest batch; undefined if the queue is empty.
   */
  queued(bytes: number, oldestMs: number | undefined): void;
  readSecret: ReadSecret;
  /** Traces requests; without it nothing is traced. */
  tracing?: Tracing;
  clock: Clock;
  drops: Drops;
  log: Log;
  /** Returns a uniform number in [0, 1). */
  random?: () => number;
}

/** Time for the last delivery: the whole agent stops within 5 s. */
const lastDeliveryMs = 3_000;
const diskWarningMs = 60_000;

const protocols: Readonly<
  Record<HostedOptions['protocol'], (origin: Origin, limits: RequestLimits) => Protocol>
> = { otlp: createOtlp, remotewrite: createRemoteWrite };

const emptyView: View = { families: [], numbers: () => new Float64Array(), release() {} };

/** Reports failing writes of the queue once a minute, not once per batch. */
function createDiskStatus({ clock, log, count }: { clock: Clock; log: Log; count(what: string): void }) {
  let reportedMs: number | undefined;
  return {
    diskFailed(error: unknown): void {
      const nowMs = clock.monotonicMs();
      if (reportedMs !== undefined && nowMs - reportedMs < diskWarningMs) return;
      if (reportedMs === undefined)
        log.write('error', 'cannot write the queue to disk; batches are kept in memory', { error });
      reportedMs = nowMs;
      count(`the queue cannot be written (${errorText(error)})`);
    },
    diskWorks(): void {
      if (reportedMs !== undefined) log.write('info', 'the queue is written to disk again');
      reportedMs = undefined;
    },
  };
}

/** Reads secrets for headers. Rejects if a header cannot have the secret as its value. */
function headerSecrets(auth: ClientAuth | undefined, readSecret: ReadSecret): ReadSecret {
  return async (secret) => {
    const value = await readSecret(secret);
    // Basic authentication encodes the password.
    if (secret !== auth?.basic?.password && !isHeaderText(value.trim()))
      throw new Error(
        'the secret has a character that a header cannot have, such as a line break; use one line',
      );
    return value;
  };
}

/**
 * The hosted reporter (`hostedmetrics`): every `reportingIntervalMs` it appends all series, as batches, to a queue
 * on disk and sends them from there to a receiver, over OTLP/HTTP or Prometheus remote write.
 *
 * Batches arrive at least once and in order per series, through outages within the queue's limits and through
 * restarts of the agent. Two reporters must not share a queue: stop the old one before the new one starts. After a
 * change of the endpoint the new receiver gets what is queued; batches of another protocol are dropped and counted.
 * A stop sends a last report; with remote write it marks all gauges stale.
 */
export function createHosted(options: HostedReporterOptions, deps: HostedDeps): Reporter {
  const { clock, drops, random = Math.random } = deps;
  const { instance, hostName, version, queueDirectory: directory } = options;
  const log = deps.log.named('hosted');
  const outcomes = createOutcomes(options.endpoint, { reported: deps.reported, log, clock });
  const prefix = options.metricsPrefix ? sanitizeName(`${options.metricsPrefix}_`) : '';
  const limits = createRequestLimits(clock);
  const { hasExternalTotals } = deps;
  const origin: Origin = { instance, hostName, version, prefix, hasExternalTotals };
  const protocol = protocols[options.protocol](origin, limits);
  const tracker = createSeriesTracker();

  const openQueue = async () => {
    const { maxBytes, maxAgeMs } = options.queue;
    const count = (what: string) => deps.reported.failed('queue_disk', what);
    const disk = createDiskStatus({ clock, log, count });
    const queue = createQueue(
      { directory, maxBytes, maxAgeMs },
      { clock, drops, ...disk, changed: deps.queued },
    );
    await queue.open();
    return queue;
  };

  return {
    async start(gather: Gather): Promise<Stop> {
      const queue = await openQueue();
      const { endpoint, auth } = options;
      const { searchParams, username, password } = new URL(endpoint);
      const parts = [...urlSecrets(endpoint), ...searchParams.values(), username, password];
      const { readSecret, redact } = createRedaction({ parts, auth }, headerSecrets(auth, deps.readSecret));
      const client = createHttpClient(options, { clock, readSecret, version });
      const { tracing } = deps;
      const post = createPost({ protocol, limits, client, outcomes, drops, clock, tracing, redact });
      const backoff = createBackoff(random);
      const delivery = startDelivery({ queue, post, limits, backoff, clock, drops });
      let lastMs = 0;

      const enqueue = async (report: Report): Promise<void> => {
        for await (const batch of protocol.encode(report)) {
          await queue.append(batch);
          delivery.wake();
        }
      };
      const report = async (): Promise<void> => {
        try {
          const frozen = () => {
            lastMs = Math.floor(clock.nowMs());
          };
          frozen();
          const view = await gather({ takes: deps.takes, frozen });
          try {
            await enqueue({ view, vanished: await tracker.vanished(view), timeMs: lastMs });
          } finally {
            view.release();
          }
        } catch (error) {
          outcomes.failed('no_view', error);
        }
      };
      /** Stale markers are dated 1 ms before their report, and must come after the last samples. */
      const endGauges = async (): Promise<void> => {
        if (!protocol.endsGaugesOnStop) return;
        await enqueue({ view: emptyView, vanished: tracker.gauges(), timeMs: lastMs + 2 });
      };

      const stopReports = runEvery(options.reportingIntervalMs, clock, report);
      const finish = async (): Promise<void> => {
        await stopReports();
        await report();
        await endGauges();
        await delivery.end();
      };
      return async () => {
        await waitAtMost(lastDeliveryMs, clock, finish());
        await client.close();
        const lost = await queue.close();
        if (lost > 0) log.write('warn', 'points that were queued in memory are lost', { points: lost });
      };
    },
  };
}

/** Remembers which series were reported, so that receivers can be told when one ends. */
interface SeriesTracker {
  /** Series of the last view that this view does not have. A series whose kind, bounds or parts changed has ended, too. */
  vanished(view: View): Promise<readonly VanishedSeries[]>;
  /** Gauges of the last view. */
  gauges(): readonly VanishedSeries[];
}

interface Tracked extends VanishedSeries {
  family: FamilyView;
  series: SeriesView;
  round: number;
}

function keyOf({ name, kind }: FamilyView, { labels, bounds, hasSum, hasCount }: SeriesView): bigint {
  const text = JSON.stringify([name, kind, bounds, hasSum, hasCount, labels]);
  return createHash('sha256').update(text).digest().readBigUInt64LE(0);
}

function createSeriesTracker(): SeriesTracker {
  const byKey = new Map<bigint, Tracked>();
  const bySeries = new WeakMap<SeriesView, { tracked: Tracked; key: bigint; kind: string }>();
  let round = 0;

  const trackedOf = (family: FamilyView, series: SeriesView): Tracked => {
    const remembered = bySeries.get(series);
    if (remembered?.kind === family.kind && byKey.get(remembered.key) === remembered.tracked) {
      return remembered.tracked;
    }
    const key = keyOf(family, series);
    const tracked = byKey.get(key) ?? { family, series, round };
    byKey.set(key, tracked);
    bySeries.set(series, { tracked, key, kind: family.kind });
    return tracked;
  };

  return {
    async vanished(view) {
      round += 1;
      const slice = createSeriesSlice();
      for (const family of view.families) {
        for (const series of family.series) {
          const tracked = trackedOf(family, series);
          tracked.family = family;
          tracked.series = series;
          tracked.round = round;
          if (slice.isOver()) await slice.next();
        }
      }
      const gone: Tracked[] = [];
      for (const [key, tracked] of byKey) {
        if (tracked.round === round) continue;
        byKey.delete(key);
        gone.push(tracked);
      }
      return gone;
    },
    gauges: () =>
      [...byKey.values()].filter(({ family: { kind } }) => kind === 'gauge' || kind === 'untyped'),
  };
}
