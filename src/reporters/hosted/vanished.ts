import { createHash } from 'node:crypto';
import type { FamilyView, SeriesView, View } from '../../core/model.ts';
import { createPause } from '../pacing.ts';
import type { Vanished } from './protocol.ts';

/** Remembers which series were reported, so that their end can be told. */
export interface Presence {
  /** Series of the last picture that this one does not have. A series whose kind or bounds changed has ended, too. */
  vanished(view: View): Promise<readonly Vanished[]>;
}

interface Known extends Vanished {
  family: FamilyView;
  series: SeriesView;
  round: number;
}

function keyOf({ name, kind }: FamilyView, { labels, bounds }: SeriesView): bigint {
  const text = JSON.stringify([name, kind, bounds, labels]);
  return createHash('sha256').update(text).digest().readBigUInt64LE(0);
}

export function createPresence(): Presence {
  const byKey = new Map<bigint, Known>();
  const bySeries = new WeakMap<SeriesView, { known: Known; key: bigint; kind: string }>();
  let round = 0;

  const knownOf = (family: FamilyView, series: SeriesView): Known => {
    const remembered = bySeries.get(series);
    if (remembered?.kind === family.kind && byKey.get(remembered.key) === remembered.known) {
      return remembered.known;
    }
    const key = keyOf(family, series);
    const known = byKey.get(key) ?? { family, series, round };
    byKey.set(key, known);
    bySeries.set(series, { known, key, kind: family.kind });
    return known;
  };

  return {
    async vanished(view) {
      round += 1;
      const pause = createPause();
      for (const family of view.families) {
        for (const series of family.series) {
          const known = knownOf(family, series);
          known.family = family;
          known.series = series;
          known.round = round;
          if (pause.isDue()) await pause.rest();
        }
      }
      const gone: Known[] = [];
      for (const [key, known] of byKey) {
        if (known.round === round) continue;
        byKey.delete(key);
        gone.push(known);
      }
      return gone;
    },
  };
}
