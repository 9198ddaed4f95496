import type { Durable } from '../core/ports.ts';

/**
 * A section of the state whose owner opens after the snapshot was read (it needs the registry, which needs the
 * restored values), and may change with a reload. Between owners the section stays as it was.
 */
export interface LaterDurable extends Durable {
  /** Hands the section over; from now on the owner freezes it. */
  hand(owner: Durable): void;
}

export function createLaterDurable(name: string): LaterDurable {
  let section: Uint8Array = new Uint8Array(0);
  let owner: Durable | undefined;
  return {
    name,
    freeze: () => owner?.freeze() ?? section,
    restore(restored) {
      section = restored;
    },
    hand(to) {
      const before = owner?.freeze() ?? section;
      if (before.length > 0) to.restore(before);
      owner = to;
    },
  };
}
