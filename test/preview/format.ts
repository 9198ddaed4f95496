const scaled = (value: number, steps: readonly (readonly [from: number, suffix: string])[]): string => {
  const [from, suffix] = steps.find(([least]) => Math.abs(value) >= least) ?? [1, ''];
  return `${Number((value / from).toPrecision(3))}${suffix}`;
};

const counts = [
  [1e9, ' Bil'],
  [1e6, ' Mil'],
  [1e3, ' K'],
] as const;
const byteSteps = [
  [1e12, ' TB'],
  [1e9, ' GB'],
  [1e6, ' MB'],
  [1e3, ' kB'],
  [1, ' B'],
] as const;
const spans = [
  [86_400, ' d'],
  [3600, ' h'],
  [60, ' min'],
  [1, ' s'],
  [1e-3, ' ms'],
  [1e-6, ' µs'],
] as const;

const formats: Readonly<Record<string, (value: number, now: number) => string>> = {
  short: (value) => scaled(value, counts),
  s: (value) => (value === 0 ? '0 s' : scaled(value, spans)),
  dtdurations: (value) => (value === 0 ? '0 s' : scaled(value, spans)),
  dateTimeFromNow: (value, now) => `${scaled(Math.max(1, now - value / 1000), spans)} ago`,
  decbytes: (value) => scaled(value, byteSteps),
  Bps: (value) => `${scaled(value, byteSteps)}/s`,
  percentunit: (value) => `${Number((100 * value).toPrecision(3))}%`,
  reqps: (value) => `${scaled(value, counts)} req/s`,
  cps: (value) => `${scaled(value, counts)} /s`,
};

/** A value in one of Grafana's units, in few characters. `now` is in seconds since the epoch. */
export function formatted(value: number, unit: string, now: number): string {
  if (unit.startsWith('suffix:')) return `${scaled(value, counts)}${unit.slice('suffix:'.length)}`;
  return (formats[unit] ?? formats.short!)(value, now);
}

/** Text as HTML shows it. */
export const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]!);
