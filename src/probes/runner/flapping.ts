/** Looks that are remembered; figures as field monitors have them (begin at 30 % changes, end at 10 %). */
const looks = 21;
const beginsAt = 6;
const endsAt = 2;

/** Notices what goes up and down without coming to rest. Counted in looks, so that no clock matters. */
export interface Flapping {
  readonly isFlapping: boolean;
  /** Takes one look, undamped; returns whether flapping began or ended with it. */
  take(ok: boolean): 'began' | 'ended' | undefined;
}

/** Begins with 6 changes among the last 21 looks, and ends when there are no more than 2. */
export function createFlapping(): Flapping {
  const changes: boolean[] = [];
  let last: boolean | undefined;
  let isFlapping = false;
  return {
    get isFlapping() {
      return isFlapping;
    },
    take(ok) {
      if (last !== undefined) changes.push(ok !== last);
      if (changes.length > looks - 1) changes.shift();
      last = ok;
      const count = changes.filter(Boolean).length;
      const next = isFlapping ? count > endsAt : count >= beginsAt;
      if (next === isFlapping) return undefined;
      isFlapping = next;
      return next ? 'began' : 'ended';
    },
  };
}
