import type { ScrapeLimits } from '../block.ts';
import { ScrapeFailure } from '../scrape-status.ts';
import type { Page } from './line-table.ts';

/**
 * The maximum number of comments: two for each of 65,536 families. Their names and texts are in memory while a page is accepted.
 */
const maxComments = 131_072;
/**
 * How much of an invalid line is kept. It is many times what is shown, so that nothing of a secret that is cut here is left in what
 * is shown: its parts that are recognized get much shorter.
 */
const mostOfInvalid = 8_192;

/** What was read of a page so far. */
interface PageTally extends Pick<Page, 'samples' | 'invalidLines' | 'firstInvalid'> {
  /** The number of the line that is being read. */
  lines: number;
  begin(): void;
  /** Throws `ScrapeFailure` if the page has more samples than its limit. */
  countSample(): void;
  /** Throws `ScrapeFailure` if the page has too many comments. */
  countComment(): void;
  /** Counts the present line as invalid. */
  skipLine(bytes: Buffer, start: number, end: number): void;
}

export function createPageTally(limits: ScrapeLimits): PageTally {
  let comments = 0;
  const tally: PageTally = {
    lines: 0,
    samples: 0,
    invalidLines: 0,
    firstInvalid: undefined,
    begin() {
      comments = tally.lines = tally.samples = tally.invalidLines = 0;
      tally.firstInvalid = undefined;
    },
    countSample() {
      if (++tally.samples > limits.samples) {
        throw new ScrapeFailure('too_many_samples', `the page has more than ${limits.samples} samples`);
      }
    },
    countComment() {
      if (++comments > maxComments)
        throw new ScrapeFailure('too_large', `the page has more than ${maxComments} HELP and TYPE lines`);
    },
    skipLine(bytes, start, end) {
      tally.invalidLines++;
      tally.firstInvalid ??= {
        line: tally.lines,
        text: bytes.toString('utf8', start, Math.min(end, start + mostOfInvalid)),
      };
    },
  };
  return tally;
}
