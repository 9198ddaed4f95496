import { createEncoder } from './encoder.ts';
import { StepFailure } from './files.ts';
import type { Place } from './place.ts';
import type { Content } from './snapshot.ts';

/** Turns contents into numbered snapshots, and leaves out those that would be as the last. */
export interface Writer {
  /** Makes sure of the directory, making and entering it again if need be. Throws `StepFailure` (`no_directory`). */
  prepare(): Promise<void>;
  /** Takes the content before it returns, then writes it. Throws `StepFailure`; the last snapshot stays then. */
  write(content: Content): Promise<void>;
  /** Numbers the next snapshot higher than this one. */
  follow(sequence: number): void;
  /** Of the last snapshot that was written or followed. */
  sequence(): number;
}

export function createWriter(place: Place): Writer {
  const encoder = createEncoder();
  let sequence = 0;
  /** Failed attempts use up a number too: one that failed after its rename may be found by a restart. */
  let numbered = 0;
  let isOnDisk = false;

  const follow = (other: number) => {
    sequence = Math.max(sequence, other);
    numbered = Math.max(numbered, other);
  };
  const reenter = async () => {
    isOnDisk = false;
    const found = await place.enter();
    // Else a restart would take what an earlier agent left there for newer than ours.
    follow(found.snapshots[0]?.sequence ?? 0);
  };
  return {
    async prepare() {
      try {
        const [isOurs, stands] = await Promise.all([place.isOurs(), place.stands()]);
        if (!stands) isOnDisk = false;
        if (!isOurs) await reenter();
      } catch (cause) {
        throw new StepFailure('no_directory', cause);
      }
    },
    async write(content) {
      if (isOnDisk && encoder.holds(content)) return;
      isOnDisk = false;
      numbered += 1;
      const number = numbered;
      await place.write(encode(content, number));
      sequence = number;
      isOnDisk = true;
    },
    follow,
    sequence: () => sequence,
  };

  function encode(content: Content, number: number): Uint8Array {
    try {
      return encoder.encode(content, number);
    } catch (cause) {
      throw new StepFailure('write', cause);
    }
  }
}
