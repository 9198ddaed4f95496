/** The beginning of the simulated hour, in seconds since the epoch. The hour is within one two-hour block of Prometheus. */
export const beginSeconds = Date.UTC(2026, 0, 1, 0, 30) / 1000;
export const minutes = 60;
export const endSeconds = beginSeconds + minutes * 60;
export const stepSeconds = 20;

/** The time of a minute of the hour, minus an age in seconds, in seconds since the epoch. */
export const momentOf = (minute: number, ageSeconds = 0): number => beginSeconds + minute * 60 - ageSeconds;

/** The strength of an incident between two minutes: it rises from 0 to 1 in the middle and falls again. */
export function bump(minute: number, from: number, to: number): number {
  return minute <= from || minute >= to ? 0 : Math.sin((Math.PI * (minute - from)) / (to - from));
}

/** A number from 0 to 1 that is always the same for the same words. */
function phaseOf(words: string): number {
  let hash = 2_166_136_261;
  for (const letter of words) hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619) >>> 0;
  return hash / 2 ** 32;
}

/** A value around 1, never below 0.6: slow waves that differ from series to series. */
export function wave(words: string, minute: number): number {
  const phase = phaseOf(words) * 2 * Math.PI;
  return 1 + 0.2 * Math.sin(minute / 9 + phase) + 0.1 * Math.sin(minute / 2.3 + 3 * phase);
}
