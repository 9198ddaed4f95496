import { createHash } from 'node:crypto';
import type { FamilyView, SeriesView, View } from '../../core/model.ts';
import { createYielder } from '../pacing.ts';
import type { VanishedSeries } from './protocol.ts';

/** Remembers which series were reported, so that receivers can be told when one ends. */
export interface SeriesTracker {
  /** Series of the last view that this one does not have. A series whose kind or bounds changed has ended, too. */
  vanished(view: View): Promise<readonly VanishedSeries[]>;
  /** Gauges of the last view. */
  gauges(): readonly VanishedSeries[];
}

interface Tracked extends VanishedSeries {
  family: FamilyView;
  series: SeriesView;
  round: number;
}

function keyOf({ name, kind }: FamilyView, { labels, bounds }: SeriesView): bigint {
  const text = JSON.stringify([name, kind, bounds, labels]);
  return createHash('sha256').update(text).digest().readBigUInt64LE(0);
}

export function createSeriesTracker(): SeriesTracker {
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
      const yielder = createYielder();
      for (const family of view.families) {
        for (const series of family.series) {
          const tracked = trackedOf(family, series);
          tracked.family = family;
          tracked.series = series;
          tracked.round = round;
          if (yielder.isDue()) await yielder.yield();
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
