import type { Clock, Log } from '../../../core/ports.ts';
import type { OpenSink } from '../sink.ts';
import { createAcquaintance } from './acquaintance.ts';
import type { Claims } from './claims.ts';
import { createDescriptors } from './descriptors.ts';
import type { Disk } from './disk.ts';
import { createDrain } from './drain.ts';
import { createGenerations } from './generations.ts';
import { createGzipReader } from './gzip.ts';
import { createLikenesses } from './likeness.ts';
import { createNewcomers } from './newcomers.ts';
import { createReader } from './reader.ts';
import { createSettling } from './settling.ts';
import { createSiblings } from './siblings.ts';
import { createSinks } from './sinks.ts';
import { createSlices } from './slices.ts';
import type { Trail } from './trail.ts';
import type { Trails } from './trails.ts';
import { createTroubles } from './troubles.ts';

export interface PartsDeps {
  disk: Disk;
  clock: Clock;
  log: Log;
  trails: Trails;
  claims: () => Claims;
  openSink: () => OpenSink;
  sliceMs: number;
  maxOpenFiles: number;
  /** Whether the newest look found a file at the path. */
  isFound(path: string): boolean;
  isStopped(): boolean;
  /** Called for each trail whose file changed. */
  changed(trail: Trail): void;
}

/** Everything that works on trails, put together. */
export function createParts(deps: PartsDeps) {
  const { disk, trails } = deps;
  const troubles = createTroubles(deps.log);
  const slices = createSlices(deps.clock, deps.sliceMs);
  const sinks = createSinks(deps.openSink);
  const descriptors = createDescriptors({ disk, troubles }, deps.maxOpenFiles);
  const reader = createReader({ disk, descriptors, sinks, troubles });
  const gzip = createGzipReader({ sinks, troubles });
  const siblings = createSiblings({ disk, troubles });
  const likenesses = createLikenesses({ disk, troubles });
  const { isIntact } = reader;
  const generations = createGenerations({ trails, siblings, likenesses, sinks, descriptors, isIntact });
  const shared = { ...deps, descriptors, reader, sinks, siblings, likenesses, generations, slices };
  return {
    troubles,
    slices,
    sinks,
    descriptors,
    gzip,
    siblings,
    acquaintance: createAcquaintance(shared),
    newcomers: createNewcomers(shared),
    settle: createSettling(shared),
    drain: createDrain({ ...shared, gzip }),
  };
}
