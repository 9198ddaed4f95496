/**
 * What a source of increases (statsd, logs) keeps of the series that the registry refused: a 52-bit hash of the raw
 * series and the number of what counts for it, 10 bytes at a load of at most 0.85. `lineHash` makes the hash.
 *
 * Nothing is counted here, so that it may forget: when it is full it starts anew, and the source asks the intake
 * again for what still comes.
 */
export interface RefusedKeys<T> {
  readonly size: number;
  /** What counts for this raw series, or undefined if it is not known as refused. */
  find(hash: number): T | undefined;
  add(hash: number, target: T): void;
  clear(): void;
}

const firstSlots = 1024;
const fullest = 0.85;
const mostTargets = 0xffff;

export function createRefusedKeys<T>(most: number): RefusedKeys<T> {
  let hashes = new Float64Array(firstSlots);
  let targetOf = new Uint16Array(firstSlots);
  let size = 0;
  let targets: T[] = [];
  let numbers = new Map<T, number>();

  const slotOf = (hash: number): number => {
    const mask = hashes.length - 1;
    let slot = (hash ^ Math.floor(hash / 2 ** 32)) & mask;
    while (hashes[slot] !== 0 && hashes[slot] !== hash) slot = (slot + 1) & mask;
    return slot;
  };
  const grow = () => {
    const [oldHashes, oldTargets] = [hashes, targetOf];
    hashes = new Float64Array(oldHashes.length * 2);
    targetOf = new Uint16Array(oldHashes.length * 2);
    for (let old = 0; old < oldHashes.length; old++) {
      if (oldHashes[old] === 0) continue;
      const slot = slotOf(oldHashes[old]!);
      hashes[slot] = oldHashes[old]!;
      targetOf[slot] = oldTargets[old]!;
    }
  };
  const clear = () => {
    hashes = new Float64Array(firstSlots);
    targetOf = new Uint16Array(firstSlots);
    size = 0;
    targets = [];
    numbers = new Map();
  };

  return {
    get size() {
      return size;
    },
    find(hash) {
      const slot = slotOf(hash);
      return hashes[slot] === 0 ? undefined : targets[targetOf[slot]!];
    },
    add(hash, target) {
      if (size >= most || targets.length >= mostTargets) clear();
      if (size + 1 > hashes.length * fullest) grow();
      let number = numbers.get(target);
      if (number === undefined) {
        number = targets.push(target) - 1;
        numbers.set(target, number);
      }
      const slot = slotOf(hash);
      if (hashes[slot] === 0) size += 1;
      hashes[slot] = hash;
      targetOf[slot] = number;
    },
    clear,
  };
}
