const clockTime = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
});
const dayTime = new Intl.DateTimeFormat(undefined, {
  year: 'numeric',
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
});
const grouped = new Intl.NumberFormat('en');

/** The reader's time zone: `GMT+1`. */
const zoneAt = (ms: number): string =>
  new Intl.DateTimeFormat('en-GB', { timeZoneName: 'short' })
    .formatToParts(ms)
    .find(({ type }) => type === 'timeZoneName')?.value ?? '';

/** A time in the reader's time zone, with the zone. */
export const zonedMoment = (time: string | number, nowMs: number): string =>
  `${moment(time, nowMs)} ${zoneAt(nowMs)}`.trimEnd();

/** A time in the reader's time zone, with the day if it is not today. */
export function moment(time: string | number, nowMs: number): string {
  const ms = typeof time === 'number' ? time : Date.parse(time);
  if (!Number.isFinite(ms)) return '–';
  return new Date(ms).toDateString() === new Date(nowMs).toDateString()
    ? clockTime.format(ms)
    : dayTime.format(ms);
}

const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A span in seconds, in its two largest units: `3 h 20 min`. */
export function span(seconds: number): string {
  let rest = Math.max(0, Math.floor(seconds));
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
    if (parts.length === 2 || (parts.length === 1 && unit === 'min' && (count >= 10 || count === 0))) break;
  }
  return parts.length > 0 ? parts.join(' ') : '0 s';
}

export const ago = (time: string | undefined, nowMs: number): string =>
  time === undefined ? 'never' : `${span((nowMs - Date.parse(time)) / 1e3)} ago`;

export const count = (value: number): string => grouped.format(Math.round(value));

export function bytes(value: number): string {
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let shown = value;
  while (shown >= 1024 && unit < names.length - 1) {
    shown /= 1024;
    unit++;
  }
  return `${shown >= 100 || unit === 0 ? Math.round(shown) : shown.toFixed(1)} ${names[unit]}`;
}

/** A duration in seconds: `3.2 ms`. */
export function seconds(value: number): string {
  if (value >= 60) return span(value);
  if (value >= 1) return `${value.toFixed(value >= 10 ? 0 : 1)} s`;
  const ms = value * 1e3;
  return `${ms >= 10 ? Math.round(ms) : ms.toFixed(1)} ms`;
}

/** A number of events per second, as text. */
export const perSecond = (value: number): string =>
  `${value >= 100 ? count(value) : Number(value.toPrecision(2))}/s`;

export const percent = (share: number): string =>
  share >= 1 ? '100 %' : `${(Math.floor(share * 1e4) / 100).toFixed(share >= 0.999 ? 2 : 1)} %`;
