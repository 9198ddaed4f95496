/** A local time as programs write it into backups: without the zone, or with an abbreviation that several zones share. */
export interface WallTime {
  /** The date and time as if they were UTC; ms since the epoch. */
  ms: number;
  /** Whether the program says that it was daylight saving time. */
  isSummer?: boolean;
}

/** No clock is further ahead of UTC than this (the Line Islands). */
const mostAheadOfUtcMs = 14 * 36e5;
const dayMs = 864e5;

/** Parses a date and a time with any blanks between them; undefined for anything else. */
export function wallTime(text: string): WallTime | undefined {
  const [, date, time] = /^(\d{4}-\d\d-\d\d)\s+(\d{1,2}:\d\d:\d\d)$/.exec(text) ?? [];
  const ms = time === undefined ? Number.NaN : Date.parse(`${date}T${time.padStart(8, '0')}Z`);
  return Number.isNaN(ms) ? undefined : { ms };
}

/** How far the zone that a program names is ahead of UTC, in ms: `UTC`, `+03`, `-0330`; undefined for other names. */
export function offsetOfName(name: string): number | undefined {
  if (/^(?:UTC|GMT|Z)$/.test(name)) return 0;
  const [, sign, hours, minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(name) ?? [];
  if (hours === undefined) return undefined;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}

/**
 * The moment of a time in a zone of the IANA database, ms since the epoch. Without a zone, and for an hour that the clock showed
 * twice, the result is the earliest possible moment. Undefined for a time that the zone does not have.
 */
export function momentOf({ ms, isSummer }: WallTime, timeZone: string | undefined): number | undefined {
  if (timeZone === undefined) return ms - mostAheadOfUtcMs;
  // The offsets before and after any change on that day are tried.
  const moments = [ms - dayMs, ms + dayMs].flatMap((near) => {
    const moment = ms - offsetAt(near, timeZone);
    const isOwn = moment + offsetAt(moment, timeZone) === ms;
    return isOwn && (isSummer === undefined || isSummer === isSummerAt(moment, timeZone)) ? [moment] : [];
  });
  return moments.length === 0 ? undefined : Math.min(...moments);
}

/** How far the clocks of a zone are ahead of UTC at a moment, in ms. */
function offsetAt(atMs: number, timeZone: string): number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' });
  const name = format.formatToParts(atMs).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  return offsetOfName(name.replace(/^GMT(?=.)/, '')) ?? 0;
}

function isSummerAt(atMs: number, timeZone: string): boolean {
  const year = new Date(atMs).getUTCFullYear();
  const offsets = [0, 6].map((month) => offsetAt(Date.UTC(year, month, 1), timeZone));
  return offsetAt(atMs, timeZone) > Math.min(...offsets);
}

/** Whether the name is in the IANA database. */
export function isTimeZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en-US', { timeZone: name }));
  } catch {
    return false;
  }
}
