/** Begin of the simulated hour, in seconds since the epoch; it lies within one two-hour block of Prometheus. */
export const beginSeconds = Date.UTC(2026, 0, 1, 0, 30) / 1000;
export const minutes = 60;
export const endSeconds = beginSeconds + minutes * 60;
export const stepSeconds = 20;

/** Seconds since the epoch of a minute of the hour, less an age in seconds. */
export const momentOf = (minute: number, ageSeconds = 0): number => beginSeconds + minute * 60 - ageSeconds;

/** How far an incident from one minute to another has come, from 0 up to 1 in its middle and down again. */
export function bump(minute: number, from: number, to: number): number {
  return minute <= from || minute >= to ? 0 : Math.sin((Math.PI * (minute - from)) / (to - from));
}

/** A number from 0 to 1 that is always the same for the same words. */
function phaseOf(words: string): number {
  let hash = 2_166_136_261;
  for (const letter of words) hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619) >>> 0;
  return hash / 2 ** 32;
}

/** Around 1, never below 0.6: slow waves that differ from series to series. */
export function wave(words: string, minute: number): number {
  const phase = phaseOf(words) * 2 * Math.PI;
  return 1 + 0.2 * Math.sin(minute / 9 + phase) + 0.1 * Math.sin(minute / 2.3 + 3 * phase);
}
