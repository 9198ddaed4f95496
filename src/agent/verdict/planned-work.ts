import { type MaintenanceWindow, weekdays } from '../config/types.ts';
import type { Change } from '../report.ts';

export interface PlannedWork {
  /** The end of the work, RFC 3339. */
  until: string;
  /** The reason, a text from outside that must be escaped. */
  reason: string;
}

const minuteMs = 60_000;
const dayMinutes = 1_440;
const weekMinutes = 7 * dayMinutes;

const clockOf = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-GB', {
    ...({ weekday: 'long', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const),
    timeZone,
  });

/** Minutes since Monday, 00:00, on the wall clock of a time zone. */
function weekMinuteAt(nowMs: number, timeZone: string): number {
  const parts = new Map(
    clockOf(timeZone)
      .formatToParts(nowMs)
      .map(({ type, value }) => [type, value]),
  );
  const day = (weekdays as readonly string[]).indexOf(parts.get('weekday')!.toLowerCase());
  return day * dayMinutes + Number(parts.get('hour')) * 60 + Number(parts.get('minute'));
}

/** How long a window still lasts, in ms; 0 outside of it. */
function leftMs({ days, start, duration, timeZone }: MaintenanceWindow, nowMs: number): number {
  const minute = weekMinuteAt(nowMs, timeZone);
  const sinceStarts = days.map((day) => {
    const begin = weekdays.indexOf(day) * dayMinutes + start;
    return (minute - begin + weekMinutes) % weekMinutes;
  });
  const passedMs = Math.min(...sinceStarts) * minuteMs + (nowMs % minuteMs);
  return Math.max(0, duration - passedMs);
}

/** The planned work that is under way, by an announcement or a window; if there are several, the one that ends last. */
export function plannedWorkAt(
  nowMs: number,
  changes: readonly Change[],
  windows: readonly MaintenanceWindow[],
): PlannedWork | undefined {
  const announced = changes.flatMap(({ until, what }): PlannedWork[] =>
    until !== undefined && Date.parse(until) > nowMs ? [{ until, reason: what }] : [],
  );
  const weekly = windows.flatMap((window): PlannedWork[] => {
    const left = leftMs(window, nowMs);
    return left > 0 ? [{ until: new Date(nowMs + left).toISOString(), reason: window.reason }] : [];
  });
  return [...announced, ...weekly].sort((a, b) => a.until.localeCompare(b.until)).at(-1);
}
