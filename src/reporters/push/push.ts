import { runEvery, waitAtMost } from '../../core/clock.ts';
import { errorText, systemCode } from '../../core/errors.ts';
import type { SeriesView } from '../../core/model.ts';
import type {
  Clock,
  Drops,
  Durable,
  Gather,
  GatherRequest,
  Log,
  Reporter,
  Tracing,
} from '../../core/ports.ts';
import type { DropReason, PushFailureReason } from '../../core/reasons.ts';
import { excerpt } from '../../core/text-formats.ts';
import type { PushOptions } from '../block.ts';
import { type Baseline, createBaseline } from './baseline.ts';
import {
  createDestination,
  type DestinationDeps,
  type DestinationLookup,
  type Link,
  type OpenDatagrams,
  openDatagrams,
  ResolveFailure,
  systemLookup,
} from './destination.ts';
import { createDrafting, datagramOf, type Packet, type PushLine, packLines } from './flush.ts';
import { createLineFormatter } from './statsd-lines.ts';

export interface PushReporterOptions extends PushOptions {
  /** The block's path in the configuration; its baseline is the section `push-<block>` of the state. */
  block: string;
  /** The block's own prefix: `p` makes `p.name`. */
  metricsPrefix: string;
  /** The value of the tag `instance`. */
  instance: string;
}

export interface PushDeps {
  /** Selects the series of this block. */
  takes: GatherRequest['takes'];
  /**
   * Whether a series shows totals that its sender began before the agent first read them, such as a scraped page's.
   */
  hasExternalTotals(series: SeriesView): boolean;
  /** Commits the state; datagrams are sent after that. */
  commit(): Promise<unknown>;
  /**
   * When this reporter was created, before the first of its series was opened, wall clock, ms. For totals that began before this
   * time only the increases are pushed, unless the restored baseline contains them.
   */
  sinceMs: number;
  reported: PushReportMetrics;
  clock: Clock;
  drops: Drops;
  log: Log;
  tracing?: Tracing;
  lookup?: DestinationLookup;
  open?: OpenDatagrams;
}

/** Time for the last flush: the whole agent stops within 5 s. */
const lastFlushMs = 3_000;

/**
 * The push reporter (spec, `pushmetrics`): every `flushIntervalMs` it sends the increases of all totals and the values of all
 * gauges as statsd lines in datagrams. One flush runs at a time; flushes that would fall into a long one are skipped.
 *
 * Increases arrive at most once: the baseline is committed before the datagrams are sent, so that a kill in between loses them.
 * Increases that the kernel does not accept are part of the next flush. Increases that it accepts while nobody listens are lost,
 * and counted if the kernel reports it. Gauges that were not sent are lost and counted. Throws `config_invalid` for an invalid
 * `hostPort`.
 */
export function createPush(options: PushReporterOptions, deps: PushDeps): Reporter & { durable: Durable } {
  const { clock, drops } = deps;
  const log = deps.log.named('push');
  const baseline = createBaseline(
    { sinceMs: deps.sinceMs },
    {
      hasExternalTotals: deps.hasExternalTotals,
      notFinite: (totals) => drops.count('push', 'not_finite', totals),
      discarded: (lines) => drops.count('push', 'send_failed', lines),
    },
  );
  const formatter = createLineFormatter({ ...options, prefixes: [options.prefix, options.metricsPrefix] });
  const drafting = createDrafting({ baseline, formatter, drops });
  const outcomes = createPushOutcomes(options.hostPort, { reported: deps.reported, log });
  const { lookup = systemLookup, open = openDatagrams } = deps;
  const delivery = createDelivery(options, { ...deps, lookup, open, baseline, outcomes });

  const flushFrom = (gather: Gather) => async () => {
    let lines: readonly PushLine[];
    try {
      const view = await gather({ takes: deps.takes });
      try {
        lines = await drafting.draft(view);
      } finally {
        view.release();
      }
    } catch (error) {
      return outcomes.failed('no_view', error);
    }
    const failure = await traced(deps.tracing, lines, () => delivery.deliver(lines));
    if (failure) outcomes.failed(failure.reason, failure.error);
    else outcomes.delivered();
  };

  return {
    durable: { name: `push-${options.block}`, freeze: baseline.freeze, restore: baseline.restore },
    async start(gather) {
      const flush = flushFrom(gather);
      const end = runEvery(options.flushIntervalMs, clock, flush);
      return async () => {
        await waitAtMost(lastFlushMs, clock, end().then(flush));
        delivery.close();
      };
    },
  };
}

interface PushDeliveryDeps extends Pick<DestinationDeps, 'lookup' | 'open' | 'clock'> {
  baseline: Pick<Baseline, 'settle' | 'restoreOwed'>;
  commit(): Promise<unknown>;
  outcomes: PushOutcomes;
  drops: Drops;
}

/** Why a flush was not sent, or was sent only in part. */
interface PushFailure {
  reason: PushFailureReason;
  error: unknown;
}

interface PushDelivery {
  /** Settles the increases, commits, then sends. Never rejects: increases that the kernel does not accept are owed again. */
  deliver(lines: readonly PushLine[]): Promise<PushFailure | undefined>;
  close(): void;
}

/** Runs each flush within a span. */
function traced(
  tracing: Tracing | undefined,
  lines: readonly PushLine[],
  deliver: () => Promise<PushFailure | undefined>,
): Promise<PushFailure | undefined> {
  if (!tracing) return deliver();
  const values = {
    'svc.batch.points': lines.length,
    'svc.batch.bytes': lines.reduce((sum, { bytes }) => sum + bytes, 0),
  };
  return tracing.span('deliver', values, async (found) => {
    const failure = await deliver();
    if (failure) found({ 'svc.failure.reason': failure.reason }, errorText(failure.error));
    return failure;
  });
}

/** Accounts for the increases and gauges of lines that are sent, or are not sent. */
function createAccounting({ baseline, drops }: Pick<PushDeliveryDeps, 'baseline' | 'drops'>) {
  /** Drops gauges, which are not stored because their next value is newer. */
  const dropGauges = (lines: readonly PushLine[], reason: DropReason): void => {
    const gauges = lines.filter(({ shares }) => shares.length === 0).length;
    if (gauges > 0) drops.count('push', reason, gauges);
  };
  return {
    dropGauges,
    settle(lines: readonly PushLine[]): void {
      for (const { shares } of lines) for (const { entry, total } of shares) baseline.settle(entry, total);
    },
    restoreOwed(lines: readonly PushLine[]): void {
      for (const { shares, amounts } of lines) {
        for (const [i, { entry, total }] of shares.entries()) baseline.restoreOwed(entry, total, amounts[i]!);
      }
      dropGauges(lines, 'send_failed');
    },
  };
}

function createDelivery(
  { hostPort, flushBytes }: Pick<PushOptions, 'hostPort' | 'flushBytes'>,
  deps: PushDeliveryDeps,
): PushDelivery {
  const { outcomes, drops } = deps;
  const { settle, restoreOwed, dropGauges } = createAccounting(deps);
  /** The number of lines in the last datagram that the kernel accepted without reporting an error. */
  let handedLines = 0;

  /** At least the last datagram is lost; the kernel reports nothing about the datagrams before it. */
  const noteRefused = () => {
    if (handedLines > 0) drops.count('push', 'send_failed', handedLines);
    handedLines = 0;
  };
  const destination = createDestination(hostPort, {
    ...deps,
    onStale: (error) => outcomes.failed('resolve', error),
    onError(error) {
      const reason = sendFailure(error);
      if (reason === 'refused') noteRefused();
      destination.markStale();
      outcomes.failed(reason, error);
    },
  });

  const linkOr = async (lines: readonly PushLine[]): Promise<{ link: Link } | PushFailure> => {
    try {
      return { link: await destination.link() };
    } catch (error) {
      const isUnresolved = error instanceof ResolveFailure;
      dropGauges(lines, isUnresolved ? 'resolve_failed' : 'send_failed');
      return { reason: isUnresolved ? 'resolve' : sendFailure(error), error };
    }
  };

  const noteFailedSend = (reason: PushFailureReason) => {
    if (reason === 'too_large') return;
    if (reason === 'refused') noteRefused();
    destination.markStale();
    if (reason !== 'refused' && reason !== 'no_buffers') destination.close();
  };

  /** Sends packets in order, up to the first failure that concerns all of them. */
  const send = async (link: Link, packets: readonly Packet<PushLine>[]): Promise<PushFailure | undefined> => {
    let failure: PushFailure | undefined;
    let isDown = false;
    const sendLines = async (lines: readonly PushLine[]): Promise<void> => {
      if (isDown) return restoreOwed(lines);
      try {
        await link.send(datagramOf({ lines }));
        handedLines = lines.length;
      } catch (error) {
        const reason = sendFailure(error);
        failure ??= { reason, error };
        if (reason === 'too_large' && lines.length > 1) {
          const half = lines.length >> 1;
          await sendLines(lines.slice(0, half));
          return sendLines(lines.slice(half));
        }
        isDown = reason !== 'too_large';
        noteFailedSend(reason);
        restoreOwed(lines);
      }
    };
    for (const { lines } of packets) await sendLines(lines);
    return failure;
  };

  return {
    async deliver(lines) {
      const { packets, tooLong } = packLines(lines, flushBytes);
      const linked = await linkOr(lines);
      if ('reason' in linked) return linked;
      settle(lines);
      if (tooLong.length > 0) drops.count('push', 'line_too_long', tooLong.length);
      try {
        if (lines.some(({ shares }) => shares.length > 0)) await deps.commit();
      } catch (error) {
        for (const packet of packets) restoreOwed(packet.lines);
        return { reason: 'no_view', error };
      }
      return send(linked.link, packets);
    },
    close: () => destination.close(),
  };
}

const reasons: Readonly<Record<string, PushFailureReason>> = {
  ECONNREFUSED: 'refused',
  EMSGSIZE: 'too_large',
  ENOBUFS: 'no_buffers',
  ENOMEM: 'no_buffers',
  EAGAIN: 'no_buffers',
  ENETUNREACH: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  ENETDOWN: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
};

/** The reason of a failed send, by its system code. */
function sendFailure(thrown: unknown): PushFailureReason {
  return reasons[systemCode(thrown) ?? ''] ?? 'failed';
}

/** Updates the metrics of the reporter: `svc_agent_report_…`. */
interface PushReportMetrics {
  /** Called when the kernel accepted a whole flush. */
  delivered(): void;
  /** `what`: the failure as one clause. */
  failed(reason: PushFailureReason, what: string): void;
}

/** The error with its cause, which says why a name cannot be resolved. */
const withCause = (thrown: unknown): string => {
  const cause = (thrown as { cause?: unknown } | undefined)?.cause;
  return cause === undefined ? errorText(thrown) : `${errorText(thrown)}: ${errorText(cause)}`;
};

/** Counts each outcome, and logs the first failure and the recovery. */
interface PushOutcomes {
  delivered(): void;
  failed(reason: PushFailureReason, error: unknown): void;
}

/** A refusal is reported after the flush that it belongs to, so one successful flush proves nothing. */
const recoveredAfter = 2;

function createPushOutcomes(
  hostPort: string,
  { reported, log }: { reported: PushReportMetrics; log: Log },
): PushOutcomes {
  let deliveries = recoveredAfter;
  return {
    delivered() {
      reported.delivered();
      deliveries += 1;
      if (deliveries === recoveredAfter) log.write('info', 'push works again', { hostPort });
    },
    failed(reason, error) {
      reported.failed(reason, excerpt(withCause(error)));
      if (deliveries >= recoveredAfter) log.write('warn', 'push failed', { hostPort, reason, error });
      deliveries = 0;
    },
  };
}
