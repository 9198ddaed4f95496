import type { Generations } from './generations.ts';
import type { GzipReader } from './gzip.ts';
import type { Reader } from './reader.ts';
import { recordOf } from './record.ts';
import type { Sinks } from './sinks.ts';
import type { Slices } from './slices.ts';
import { isStale, type Trail } from './trail.ts';
import type { Trails } from './trails.ts';

interface DrainDeps {
  trails: Trails;
  reader: Reader;
  gzip: GzipReader;
  sinks: Sinks;
  generations: Generations;
  slices: Slices;
  isStopped(): boolean;
}

/** Reads what is new in the lineages of the given trails, up to the sizes that they were last seen with. */
export type Drain = (stale: Iterable<Trail>, look: number) => Promise<void>;

/** Lineages take turns, chunk by chunk; within one, the oldest generation with something to read goes first. */
export function createDrain(deps: DrainDeps): Drain {
  const { trails, reader, gzip, sinks, generations, slices } = deps;

  const turnPlain = (trail: Trail, look: number) => {
    const turn = reader.turn(trail, look);
    if (turn === 'changed') generations.rewritten(trail);
    else if (turn !== 'more') trail.drainedBy = look;
    if (turn !== 'absent') trail.finished = false;
    // Encoded here, in a slice, so that a freeze of many files has next to nothing to encode.
    if (turn === 'end') recordOf(trail);
  };

  const turnCompressed = async (trail: Trail) => {
    const turn = await gzip.turn(trail);
    if (turn === 'changed') generations.mistaken(trail);
    if (turn === 'broken') generations.broken(trail);
    if (turn === 'end') {
      sinks.finish(trail);
      trail.finished = true;
    }
  };

  return async (stale, look) => {
    const lineages = new Set<string>();
    for (const trail of stale) lineages.add(trail.path);
    while (lineages.size > 0) {
      for (const path of lineages) {
        const next = trails.lineage(path).find((trail) => isStale(trail) && trail.drainedBy !== look);
        if (!next) lineages.delete(path);
        else if (next.compressed) await turnCompressed(next);
        else turnPlain(next, look);
        if (deps.isStopped()) return;
        if (slices.spent()) await slices.turn();
      }
    }
  };
}
