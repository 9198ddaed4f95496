import { waitAtMost } from '../../core/clock.ts';
import type { SeriesView } from '../../core/model.ts';
import type { Clock, Drops, Durable, Gather, GatherRequest, Log, Reporter } from '../../core/ports.ts';
import { runEvery } from '../pacing.ts';
import { createBaseline } from './baseline.ts';
import type { PushOptions } from './block.ts';
import { type DestinationLookup, type OpenDatagrams, openDatagrams, systemLookup } from './destination.ts';
import { createDrafting, type Line } from './flush.ts';
import { createDelivery, createPushOutcomes, type PushReportMetrics } from './send.ts';
import { createLineFormatter } from './statsd-lines.ts';

export interface PushReporterOptions extends PushOptions {
  /** The block's path in the configuration; its baseline is the section `push-<block>` of the state. */
  block: string;
  /** The block's own prefix: `p` makes `p.name`. */
  metricsPrefix: string;
  /** Value of the tag `instance`. */
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
   * Wall clock, ms: when this reporter was created, before the first of its series was opened. Of totals that began
   * earlier only the increases are pushed, unless the restored baseline contains them.
   */
  sinceMs: number;
  reported: PushReportMetrics;
  clock: Clock;
  drops: Drops;
  log: Log;
  lookup?: DestinationLookup;
  open?: OpenDatagrams;
}

/** Time for the last flush: the whole agent stops within 5 s. */
const lastFlushMs = 3_000;

/**
 * The push reporter (spec, `pushmetrics`): every `flushIntervalMs` it sends the increases of all totals and the
 * values of all gauges as statsd lines in datagrams. One flush runs at a time; flushes that would fall into a long
 * one are skipped.
 *
 * Increases arrive at most once: the baseline is committed before the datagrams are sent, so that a kill in between
 * loses them. Increases that the kernel does not accept are part of the next flush. Those that it accepts while
 * nobody listens are lost, and counted if the kernel reports it. Gauges that were not sent are lost and counted.
 * Throws `config_invalid` for an invalid `hostPort`.
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
    let lines: readonly Line[];
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
    await delivery.deliver(lines);
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
