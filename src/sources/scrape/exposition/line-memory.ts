/**
 * The memory outside the heap that the lines of all targets take together: the known lines and the lines of pages that are being
 * read. A page that exceeds it is discarded, unless its target takes little, so that a role with a usual page is served beside
 * other roles with pages of 30 MB.
 */
export interface LineMemory {
  readonly limitBytes: number;
  open(): LineUse;
}

/** The memory of one target's lines. */
export interface LineUse {
  readonly limitBytes: number;
  /** Sets the number of bytes that the target's lines take now. Returns whether that is allowed. */
  set(bytes: number): boolean;
  close(): void;
}

/** This part of the limit is divided equally among the targets. Each target may use its share in any case. */
const reservedPart = 0.25;

export function createLineMemory(limitBytes: number): LineMemory {
  let total = 0;
  let targets = 0;
  return {
    limitBytes,
    open() {
      let own = 0;
      targets += 1;
      const set = (bytes: number): boolean => {
        total += bytes - own;
        own = bytes;
        return total <= limitBytes || own <= (reservedPart * limitBytes) / targets;
      };
      return {
        limitBytes,
        set,
        close() {
          set(0);
          targets -= 1;
        },
      };
    },
  };
}
