import { waitAtMost } from '../../core/clock.ts';
import type { SeriesView } from '../../core/model.ts';
import type { Clock, Drops, Durable, Gather, GatherRequest, Log, Reporter } from '../../core/ports.ts';
import { runEvery } from '../pacing.ts';
import { createBaseline } from './baseline.ts';
import type { PushOptions } from './block.ts';
import { type Lookup, type OpenDatagrams, openDatagrams, systemLookup } from './destination.ts';
import { createDrafting, type Line } from './flush.ts';
import { createDelivery, createOutcomes, type Reported } from './send.ts';
import { createFormer } from './statsd-lines.ts';

export interface PushReporterOptions extends PushOptions {
  /** The block's place in the configuration; its baseline is the section `push-<block>`. */
  block: string;
  /** The block's own prefix: `p` makes `p.name`. */
  metricsPrefix: string;
  /** Value of the tag `instance`. */
  instance: string;
}

export interface PushDeps {
  /** Whether a series is reported here. */
  takes: GatherRequest['takes'];
  /**
   * Whether the totals of a series are those of its sender, which began before the agent looked and go on while
   * it does not: a scraped page's.
   */
  hasExternalTotals(series: SeriesView): boolean;
  /** Commits the state; packets leave after that. */
  commit(): Promise<unknown>;
  /**
   * Wall clock, ms: when this reporter came to be, at the latest when the first of its series opened. Totals
   * that began earlier are pushed by what they grow, unless the restored baseline knows them.
   */
  sinceMs: number;
  reported: Reported;
  clock: Clock;
  drops: Drops;
  log: Log;
  lookup?: Lookup;
  open?: OpenDatagrams;
}

/** What a last flush may take: the whole agent stops within 5 s. */
const lastFlushMs = 3_000;

/**
 * The push reporter (spec, `pushmetrics`): every `flushIntervalMs` the increases of all totals and the values of
 * all gauges, as statsd lines in datagrams. One flush at a time; a flush that takes longer than the interval
 * costs the ones it runs over, never a burst of them.
 *
 * Increases arrive at most once: the baseline with them is committed before their packets leave, so that a kill
 * in between loses them. What the kernel did not take stays in the next delta. What it took while nobody
 * listened is lost, and counted where the kernel says so. Gauges that did not leave are lost and counted.
 * Throws `config_invalid` on a `hostPort` that is none.
 */
export function createPush(options: PushReporterOptions, deps: PushDeps): Reporter & { durable: Durable } {
  const { clock, drops } = deps;
  const log = deps.log.named('push');
  const baseline = createBaseline(
    { sinceMs: deps.sinceMs },
    {
      hasExternalTotals: deps.hasExternalTotals,
      notFinite: (totals) => drops.count('push', 'not_finite', totals),
      gaveUp: (lines) => drops.count('push', 'send_failed', lines),
    },
  );
  const former = createFormer({ ...options, prefixes: [options.prefix, options.metricsPrefix] });
  const drafting = createDrafting({ baseline, former, drops });
  const outcomes = createOutcomes(options.hostPort, { reported: deps.reported, log });
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
