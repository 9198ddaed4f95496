import { compareText } from '../../core/registry/labels.ts';
import { type MaintenanceWindow, weekdays } from '../config/types.ts';
import type { Change } from '../report.ts';

export interface PlannedWork {
  /** The end of the work, RFC 3339. */
  until: string;
  /** The reason, a text from outside that must be escaped. */
  reason: string;
}

const minuteMs = 60_000;
const dayMs = 86_400_000;

/** The wall clock of a time zone at a moment, as the ms since the epoch at which a clock in UTC shows the same time. */
function createWallClock(timeZone: string): (atMs: number) => number {
  const clock = new Intl.DateTimeFormat('en-GB', {
    ...({ year: 'numeric', month: 'numeric', day: 'numeric' } as const),
    ...({ hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const),
    timeZone,
  });
  return (atMs) => {
    const parts = new Map(clock.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]));
    const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type)!;
    return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
  };
}

/**
 * The moment at which a wall clock shows a time. If the clock shows the time twice, because it is set back, the first moment
 * counts. A time that the clock skips, because it is set forward, counts from the last time before the gap.
 */
function momentOf(wallMs: number, wallAt: (atMs: number) => number): number {
  const offsetMs = (atMs: number) => wallAt(atMs) - atMs;
  // A zone changes its offset less than once in two days.
  const [before, after] = [wallMs - offsetMs(wallMs - dayMs), wallMs - offsetMs(wallMs + dayMs)];
  return wallAt(before) !== wallMs && wallAt(after) === wallMs ? after : before;
}

/** How long a window still lasts, in ms; 0 outside of it. Its start is by the wall clock; its duration is elapsed time. */
function leftMs({ days, start, duration, timeZone }: MaintenanceWindow, nowMs: number): number {
  const wallAt = createWallClock(timeZone);
  const todayMs = Math.floor(wallAt(nowMs) / dayMs) * dayMs;
  const startsMs = Array.from({ length: 9 }, (_, back) => todayMs - back * dayMs)
    // The week of Date begins with Sunday.
    .filter((day) => days.includes(weekdays[(new Date(day).getUTCDay() + 6) % 7]!))
    .map((day) => momentOf(day + start * minuteMs, wallAt))
    .filter((startMs) => startMs <= nowMs);
  return Math.max(0, Math.max(...startsMs) + duration - nowMs);
}

/**
 * The planned work that is under way, by an announcement or a window; if there are several, the work that ends last. `changes`
 * begin with the newest change. An announcement of work that lasts no time ends all work that was announced before.
 */
export function plannedWorkAt(
  nowMs: number,
  changes: readonly Change[],
  windows: readonly MaintenanceWindow[],
): PlannedWork | undefined {
  const ended = changes.findIndex(({ at, until }) => at === until);
  const announced = changes
    .slice(0, ended < 0 ? undefined : ended)
    .flatMap(({ until = '', what }): PlannedWork[] =>
      Date.parse(until) > nowMs ? [{ until, reason: what }] : [],
    );
  const weekly = windows.flatMap((window): PlannedWork[] => {
    const left = leftMs(window, nowMs);
    return left > 0 ? [{ until: new Date(nowMs + left).toISOString(), reason: window.reason }] : [];
  });
  return [...announced, ...weekly].sort((a, b) => compareText(a.until, b.until)).at(-1);
}
