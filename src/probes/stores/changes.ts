import type { StoreLook, StoreVerdict } from './store.ts';

/** For how long a change shows, so that whoever looks from time to time sees it. */
export const changeShownMs = 3_600_000;

/** How far two looks may be apart on one start that is worked out from a time since, in whole seconds. */
const sameStartMs = 3000;

const watched = ['identity', 'timeline', 'uptime'] as const;
type Watched = (typeof watched)[number];

interface Change {
  atMs: number;
  found: string;
}

/** What is kept of a store from look to look, as JSON. */
export interface Remembered {
  identity?: string;
  timeline?: number;
  startedAtMs?: number;
  changes: Partial<Record<Watched, Change>>;
}

export interface Noticed {
  remember: Remembered;
  verdicts: readonly StoreVerdict[];
  /** What changed with this look, where no change showed before. */
  news: readonly { check: Watched; found: string }[];
}

/** What was remembered, as far as it is what it should be. */
export function readRemembered(recalled: unknown): Remembered {
  const { identity, timeline, startedAtMs, changes } = recordOf(recalled);
  const kept = watched.flatMap((check) => {
    const { atMs, found } = recordOf(recordOf(changes)[check]);
    return typeof atMs === 'number' && typeof found === 'string' ? [[check, { atMs, found }] as const] : [];
  });
  return {
    ...(typeof identity === 'string' && { identity }),
    ...(typeof timeline === 'number' && { timeline }),
    ...(typeof startedAtMs === 'number' && { startedAtMs }),
    changes: Object.fromEntries(kept),
  };
}

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** Compares a look with what is remembered of those before. */
export function notice(before: Remembered, look: StoreLook, nowMs: number): Noticed {
  const fresh = changesOf(before, look);
  const changes = { ...shown(before.changes, nowMs) };
  const news = [];
  for (const [check, found] of Object.entries(fresh) as [Watched, string][]) {
    if (changes[check] === undefined) news.push({ check, found });
    changes[check] = { atMs: nowMs, found };
  }
  const { identity = before.identity, timeline = before.timeline, startedAtMs = before.startedAtMs } = look;
  return {
    remember: { identity, timeline, startedAtMs, changes },
    verdicts: verdictsOf(look, changes),
    news,
  };
}

/** What is another than before; of another server, its start and timeline say nothing. */
function changesOf(before: Remembered, look: StoreLook): Partial<Record<Watched, string>> {
  const { identity, timeline, startedAtMs, startKept } = look;
  if (before.identity !== undefined && identity !== undefined && identity !== before.identity)
    return { identity: `${identity}, it was ${before.identity}` };
  const isOther = before.timeline !== undefined && timeline !== undefined && timeline !== before.timeline;
  const isLater =
    before.startedAtMs !== undefined &&
    startedAtMs !== undefined &&
    startedAtMs > before.startedAtMs + (startKept ? 0 : sameStartMs);
  return {
    ...(isOther && { timeline: `timeline ${timeline}, it was ${before.timeline}` }),
    ...(isLater && { uptime: `started again at ${timeText(startedAtMs)}` }),
  };
}

/** Those that still show; one from the future, as the clock was set back, shows from now on. */
function shown(changes: Remembered['changes'], nowMs: number): Remembered['changes'] {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([check, { atMs, found }]) =>
      nowMs - atMs >= changeShownMs ? [] : [[check, { atMs: Math.min(atMs, nowMs), found }]],
    ),
  );
}

function verdictsOf(
  { identity, timeline, startedAtMs }: StoreLook,
  changes: Remembered['changes'],
): StoreVerdict[] {
  const now = {
    identity,
    timeline: timeline === undefined ? undefined : `timeline ${timeline}`,
    uptime: startedAtMs === undefined ? undefined : `started at ${timeText(startedAtMs)}`,
  };
  return watched.flatMap((check): StoreVerdict[] => {
    const change = changes[check];
    if (change) return [{ check, holds: false, found: change.found }];
    return now[check] === undefined ? [] : [{ check, holds: true, found: now[check] }];
  });
}

/** A time for people; whatever a server calls its start. */
export function timeText(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`;
}
