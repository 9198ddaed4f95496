const firstCapacity = 256;

/**
 * Numbers side by side, handed out in runs. What holds a run reads `live` anew at each access: it is
 * replaced when it grows and when a page is swapped.
 */
export class Cells {
  live: Float64Array = new Float64Array(firstCapacity);
  /** Cells ever handed out; those beyond are unused. */
  used = 0;
  readonly #free = new Map<number, number[]>();

  /** The first of `width` cells, all 0. */
  take(width: number): number {
    const freed = this.#free.get(width)?.pop();
    if (freed !== undefined) {
      this.live.fill(0, freed, freed + width);
      return freed;
    }
    const at = this.used;
    this.used += width;
    if (this.used > this.live.length) this.#grow();
    return at;
  }

  give(at: number, width: number): void {
    const freed = this.#free.get(width);
    if (freed) freed.push(at);
    else this.#free.set(width, [at]);
  }

  /** A copy of the cells that are in use. */
  copy(): Float64Array {
    return this.live.slice(0, this.used);
  }

  #grow(): void {
    const grown = new Float64Array(Math.max(this.used, this.live.length * 2));
    grown.set(this.live);
    this.live = grown;
  }
}
