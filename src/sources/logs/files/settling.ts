import type { Clock } from '../../../core/ports.ts';
import type { Descriptors } from './descriptors.ts';
import type { Reader } from './reader.ts';
import { isStale, type Trail } from './trail.ts';
import type { Trails } from './trails.ts';

/** How long a deleted file must have been quiet before its space is given back. */
const unlinkedQuietMs = 1_000;
/** How long a rotated file must have been quiet: its writer may keep it open for a while. */
const rotatedQuietMs = 10_000;

interface SettlingDeps {
  clock: Clock;
  trails: Trails;
  descriptors: Descriptors;
  reader: Reader;
}

/** Rotated files of a lineage that are remembered, should a writer or a link come back to one. */
const rememberedRotated = 4;

/**
 * Ends what is drained and quiet: counts its unfinished line, closes it and, if nothing leads to it any more,
 * forgets it.
 */
export function createSettling({ clock, trails, descriptors, reader }: SettlingDeps) {
  const isQuiet = (trail: Trail) => {
    const quietMs = trail.standing === 'unlinked' ? unlinkedQuietMs : rotatedQuietMs;
    return !isStale(trail) && clock.monotonicMs() - trail.changedMs >= quietMs;
  };

  const isOutlived = (trail: Trail) =>
    trails
      .lineage(trail.path)
      .filter(
        ({ generation, standing, at }) =>
          generation > trail.generation && standing === 'rotated' && at === '',
      ).length >= rememberedRotated;

  return (trail: Trail): void => {
    if (trail.standing === 'live') return;
    if (!trail.finished && isQuiet(trail)) {
      reader.finish(trail);
      descriptors.close(trail);
      trail.finished = true;
    }
    const isForgotten = trail.standing === 'unlinked' || (trail.at === '' && isOutlived(trail));
    if (trail.finished && !isStale(trail) && isForgotten) trails.remove(trail);
  };
}
