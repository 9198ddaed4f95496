/** A copy of all durable values, taken in one synchronous step. */
export interface Frozen {
  /** Grows by one with each freeze. */
  readonly seq: number;
  readonly values: Float64Array;
  /** Identities of the series in `values`, encoded; the same array object until series change. */
  readonly table: Uint8Array;
}

/**
 * The values behind "commit before expose" (DESIGN §3): live ones are written by handles, shown ones are
 * what reporters read, and only `publish` moves what is shown.
 */
export interface DurableValues {
  freeze(): Frozen;
  /** Makes a freeze what views show from now on. */
  publish(frozen: Frozen): void;
  /** Takes values from a snapshot, once, before any intake opens. Throws `snapshot_corrupt` on a table it cannot read. */
  restore(table: Uint8Array, values: Float64Array): void;
}
