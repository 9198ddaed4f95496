/**
 * Bytes of the JavaScript heap that series, their families and their owners take, with what sources and reporters
 * keep for each of them. Measured with heap snapshots of scraped pages, statsd names and log labels. A number of
 * series says little about memory: a family with one series takes three times as much as one series more, and a
 * sender chooses how long names and labels are.
 */
const perFamily = 2_000;
const perSeries = 400;
const perOwner = 900;
/**
 * A number of a histogram or summary: its cells, what sets it, and the line of the page that has it. Most of that is
 * outside the heap, but takes the same memory.
 */
const perNumber = 350;

/** A series with its owner, without its text. */
const typicalText = 300;

/** The number of series of usual length for which there is room. */
export const seriesIn = (heapBytes: number): number =>
  Math.floor(heapBytes / (perSeries + perOwner + typicalText));

/** The name is in the family, in its views and in its metadata. */
export const familyBytes = (name: string): number => perFamily + 2 * name.length;

/** The identity has the text of the labels once more. */
export const seriesBytes = ({ identity }: { identity: string }): number => perSeries + 2 * identity.length;

interface Owned {
  rawKey: string;
  help: string;
  layout: { width: number };
}

export const ownerBytes = ({ rawKey, help, layout }: Owned): number =>
  perOwner + perNumber * (layout.width - 1) + 2 * rawKey.length + help.length;
