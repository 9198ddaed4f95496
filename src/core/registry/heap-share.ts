/**
 * The bytes of the JavaScript heap for a family. This module estimates the heap that series, their families and their owners
 * take, including what sources and reporters store for each of them, from heap snapshots of scraped pages, statsd names and log
 * labels. The number of series says little about memory: a family with one series takes three times as much as one further
 * series, and a sender chooses how long names and labels are.
 */
const perFamily = 2_000;
const perSeries = 400;
const perOwner = 900;
/**
 * The bytes for a number of a histogram or summary: its cells, its part, and its line in the page. Most of this is outside of the
 * heap, but it takes the same memory.
 */
const perNumber = 350;

/** The bytes for a series with its owner, without its text. */
const typicalText = 300;

/** The number of series of usual length for which there is room. */
export const seriesIn = (heapBytes: number): number =>
  Math.floor(heapBytes / (perSeries + perOwner + typicalText));

/** The name is stored in the family, in its views and in its metadata. */
export const familyBytes = (name: string): number => perFamily + 2 * name.length;

/** The identity contains the text of the labels once more. */
export const seriesBytes = ({ identity }: { identity: string }): number => perSeries + 2 * identity.length;

interface Owned {
  rawKey: string;
  help: string;
  layout: { width: number };
}

export const ownerBytes = ({ rawKey, help, layout }: Owned): number =>
  perOwner + perNumber * (layout.width - 1) + 2 * rawKey.length + help.length;
