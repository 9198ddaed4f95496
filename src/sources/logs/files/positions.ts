import type { Disk } from '../discovery/disk.ts';
import { createPositionsEncoder, decodePositions, type Recorded, recordOf } from './checkpoint.ts';
import type { Generation, Place } from './generation.ts';
import type { ScanDeps } from './places.ts';

/** Whether a file is where it was, as far as that can be seen. */
function isStillThere(disk: Disk, { real, ino }: Place): boolean {
  try {
    return disk.stat(real)?.ino === ino;
  } catch {
    return true;
  }
}

/** Maintains which recorded generations are read: those that a selected service claims. */
export function createPositions({ clock, disk, generations, patterns }: ScanDeps) {
  const remembered = new Set<string>();
  const encode = createPositionsEncoder();
  /** The positions of files that no selected service claims. They are stored until a service claims the file again. */
  let parked: Recorded[] = [];

  const admit = (recorded: Recorded) => {
    const { of, place, copies } = recorded;
    if (of.status !== 'ended') {
      const claimants = patterns().claimants([of.group]);
      generations.update(of, { names: '', claimants });
      if (!patterns().isWatched(of.group)) {
        if (claimants.length > 0 || (place && isStillThere(disk, place))) parked.push(recorded);
        return;
      }
    }
    generations.add(of, place);
    if (place) place.changedMs = clock.monotonicMs();
    for (const copy of copies) generations.know({ ...copy, of });
  };
  const recordedOf = (of: Generation): Recorded => ({
    of,
    place: of.place,
    copies: generations.copiesOf(of),
  });

  return {
    /** The patterns that earlier scans included. */
    remembered,
    /** Every generation that may be read under other patterns. */
    all: () => [...[...generations.open].map(recordedOf), ...parked],
    /** Decides again about these generations; returns those that are not read under the present patterns. */
    readmit(all: readonly Recorded[]): readonly Generation[] {
      parked = [];
      for (const recorded of all) {
        generations.remove(recorded.of);
        admit(recorded);
      }
      return parked.map(({ of }) => of);
    },
    freeze() {
      const records = [...[...generations.all()].map(recordedOf), ...parked].map(recordOf);
      return encode({ patterns: [...remembered], lastNumber: generations.lastNumber }, records);
    },
    restore(section: Uint8Array): void {
      const positions = decodePositions(section);
      for (const pattern of positions.patterns) remembered.add(pattern);
      generations.lastNumber = positions.lastNumber;
      for (const recorded of positions.generations) admit(recorded);
    },
  };
}
