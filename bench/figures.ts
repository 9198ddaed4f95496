/** Numbers that several benches compute. */

export const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

/** The CPU time of this process, ms. */
export function cpuMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

/** The sum of the samples of series on a page in text format; `series` is a regular expression, with or without labels. */
export const sumOn = (page: string, series: string): number =>
  [...page.matchAll(new RegExp(`^${series}(?:\\{.*\\})? (\\S+)$`, 'gm'))].reduce(
    (sum, [, value]) => sum + Number(value),
    0,
  );

/** The text of a page; empty if there is no answer. */
export const textOf = (url: string): Promise<string> =>
  fetch(url).then(
    (answer) => answer.text(),
    () => '',
  );
