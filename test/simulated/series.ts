import { beginSeconds, endSeconds, minutes, stepSeconds } from './time.ts';

export type Tags = Readonly<Record<string, string>>;

/** One simulated series: a gauge's value by minute, or a counter's increase per second. */
export interface Simulated {
  name: string;
  tags: Tags;
  /** The value of a gauge; undefined if there is no sample at that minute. */
  gauge?(minute: number): number | undefined;
  perSecond?(minute: number): number;
  /** The minute at which a counter begins at 0 again. */
  restartsAt?: number;
  /** The minute at which the series ends. */
  endsAt?: number;
}

const escaped = (text: string): string => text.replace(/[\\"]/g, '\\$&');
const identity = ({ name, tags }: Simulated): string =>
  `${name}{${Object.entries(tags)
    .map(([tag, value]) => `${tag}="${escaped(value)}"`)
    .join(',')}}`;

/** The samples of a series in the text of OpenMetrics, one per line. */
export function linesOf(series: Simulated): string {
  const head = identity(series);
  const { gauge, perSecond, restartsAt, endsAt = minutes } = series;
  let [total, hasRestarted] = [0, false];
  let lines = '';
  for (let seconds = beginSeconds; seconds <= endSeconds; seconds += stepSeconds) {
    const minute = (seconds - beginSeconds) / 60;
    if (minute > endsAt) break;
    if (restartsAt !== undefined && minute >= restartsAt && !hasRestarted) [total, hasRestarted] = [0, true];
    if (perSecond) total += perSecond(minute) * stepSeconds;
    const value = perSecond ? Math.round(total * 1000) / 1000 : gauge?.(minute);
    if (value !== undefined) lines += `${head} ${value} ${seconds}\n`;
  }
  return lines;
}
