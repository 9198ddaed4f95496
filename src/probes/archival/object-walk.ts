import type { ObjectPage } from '../object-store/listing.ts';

/**
 * A walk over all objects of an archive, spread over many looks: a list is in the order of names, so that the
 * newest object may stand anywhere in it. JSON, kept across looks and restarts.
 */
export interface ObjectWalk {
  /** What is walked over; another archive is another walk. */
  of: string;
  /** Name after which it goes on; none at the beginning. */
  after?: string;
  /** Newest object so far, ms since the epoch. */
  seenMs?: number;
  /** What the last walk that came to the end found. */
  whole?: { newestMs?: number };
}

/** The walk as it was left; from the beginning when there was none, or one of another archive. */
export function resumedWalk(recalled: unknown, of: string): ObjectWalk {
  const walk = recalled as Partial<Record<keyof ObjectWalk, unknown>> | null | undefined;
  if (typeof walk !== 'object' || walk === null || walk.of !== of) return { of };
  const { after, seenMs, whole } = walk;
  const isWhole = typeof whole === 'object' && whole !== null;
  return {
    of,
    ...(typeof after === 'string' ? { after, seenMs: timeOf(seenMs) } : {}),
    ...(isWhole ? { whole: { newestMs: timeOf((whole as { newestMs?: unknown }).newestMs) } } : {}),
  };
}

/** The walk one page further; after the last page it begins again. */
export function walkOn(walk: ObjectWalk, { objects, continuation }: ObjectPage): ObjectWalk {
  const times = objects
    // What consoles show as a directory was made when the archive was set up.
    .filter(({ key, sizeBytes }) => !(key.endsWith('/') && sizeBytes === 0))
    .map(({ lastModifiedMs }) => lastModifiedMs);
  const seenMs = later(walk.seenMs, times.reduce<number | undefined>(later, undefined));
  if (continuation === undefined) return { of: walk.of, whole: { newestMs: seenMs } };
  return { ...walk, after: objects.at(-1)?.key ?? walk.after, seenMs };
}

/** Newest object known, ms since the epoch; undefined until one walk has come to the end, and when there is none. */
export function newestOf({ seenMs, whole }: ObjectWalk): number | undefined {
  return whole && later(whole.newestMs, seenMs);
}

export function later(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}

const timeOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;
