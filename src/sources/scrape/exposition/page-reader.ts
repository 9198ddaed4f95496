import { cursor } from '../../../core/decimal.ts';
import { ScrapeFailure } from '../failure.ts';
import type { ScrapeLimits } from '../options.ts';
import { readComment } from './comment.ts';
import { brokenKey, longKey, scanKey } from './key.ts';
import { addLine, findLine, freeLine, hasKey, type LineTable } from './line-table.ts';
import { readValue } from './tail.ts';

export type Exposition = 'text' | 'openmetrics';

/** A page that was read to its end; nothing of it is shown yet. */
export interface Page {
  /** Its number, as \`seen\` of the table has it. */
  round: number;
  /** Ids of its lines in their order; the first `count` are of this page. */
  order: Int32Array;
  count: number;
  samples: number;
  bytes: number;
  /** Lines passed over: broken ones, and those that repeat a line of the same page. */
  invalidLines: number;
  /** The first of them, for the log. */
  firstInvalid: { line: number; text: string } | undefined;
  /** Whether lines came, went or moved since the page taken last. */
  changed: boolean;
}

/**
 * Reads pages of one target, one at a time, as their bytes come in. A page mostly repeats the lines of the one
 * before in the same order, so each line is first held against the next line of that page, byte by byte; only
 * one that differs is scanned and looked up. What it read stands in `incoming` of the table; a page that fails
 * leaves no trace but that.
 *
 * Formats: text 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/) and OpenMetrics 1.0.
 */
export interface PageReader {
  begin(format: Exposition): void;
  /** Reads on; the bytes are not kept. Throws `ScrapeFailure` for a page over its limits. */
  write(chunk: Buffer): void;
  /**
   * Ends the page. `wholeBody` says that the transport vouches for the last byte: without that, a last line
   * that has no newline may be cut off. Throws `ScrapeFailure` for a broken body.
   */
  end(wholeBody: boolean): Page;
  /** Makes the page the one that the next is held against. */
  take(page: Page): void;
  /** Forgets the lines that only the failed page had. */
  discard(): void;
}

const maxLineBytes = 1024 * 1024;
const newline = Buffer.from('\n');

export function createPageReader(table: LineTable, limits: ScrapeLimits): PageReader {
  let openMetrics = false;
  let round = 0;
  let lastOrder: Int32Array = new Int32Array(64);
  let lastCount = 0;
  let order: Int32Array = new Int32Array(64);
  let count = 0;
  let expected = 0;
  let moved = false;
  let ended = false;
  let lines = 0;
  let samples = 0;
  let bytesRead = 0;
  let invalidLines = 0;
  let firstInvalid: Page['firstInvalid'];
  let born: number[] = [];
  let carry: Buffer[] = [];
  let carryBytes = 0;

  const refuse = (bytes: Buffer, start: number, end: number): void => {
    invalidLines++;
    firstInvalid ??= { line: lines, text: bytes.toString('utf8', start, Math.min(end, start + 120)) };
  };

  const note = (id: number, value: number): void => {
    table.seen[id] = round;
    table.incoming[id] = value;
    if (count === order.length) {
      const longer = new Int32Array(count * 2);
      longer.set(order);
      order = longer;
    }
    order[count] = id;
    table.position[id] = count++;
    if (table.comment[id] === 0 && ++samples > limits.samples) {
      throw new ScrapeFailure('too_many_samples', `the page has more than ${limits.samples} samples`);
    }
  };

  /** Notes a line that is not where the last page had it; false if this page has it already. */
  const noteMoved = (bytes: Buffer, start: number, end: number, comment: boolean, value: number): boolean => {
    let id = findLine(table, bytes, start, end);
    if (id === -1) {
      id = addLine(table, bytes, start, end, comment);
      born.push(id);
      moved = true;
    } else if (table.seen[id] === round) return false;
    else {
      const position = table.position[id]!;
      if (position !== expected || lastOrder[position] !== id) moved = true;
      if (lastOrder[position] === id) expected = position + 1;
    }
    note(id, value);
    return true;
  };

  const readCommentLine = (bytes: Buffer, start: number, end: number): void => {
    const comment = readComment(bytes, start, end);
    if (comment === 'invalid') refuse(bytes, start, end);
    else if (comment?.about === 'end') ended = openMetrics;
    else if (comment !== undefined) noteMoved(bytes, start, end, true, 0);
  };

  /** Reads the line at `at` without any expectation; returns the index behind its newline. */
  const readLine = (bytes: Buffer, at: number): number => {
    const end = bytes.indexOf(0x0a, at);
    let start = at;
    while (bytes[start] === 0x20 || bytes[start] === 0x09) start++;
    if (start === end) return end + 1;
    if (ended) throw new ScrapeFailure('invalid_body', 'the page goes on after # EOF');
    if (bytes[start] === 0x23) readCommentLine(bytes, start, end);
    else {
      const valueAt = scanKey(bytes, start, end, limits.labelBytes);
      if (valueAt === longKey) {
        throw new ScrapeFailure(
          'label_too_long',
          `line ${lines}: a label is over ${limits.labelBytes} bytes`,
        );
      }
      if (valueAt === brokenKey) refuse(bytes, start, end);
      else {
        const value = readValue(bytes, valueAt, openMetrics);
        if (cursor.at === -1 || !noteMoved(bytes, start, valueAt, false, value)) refuse(bytes, start, end);
      }
    }
    return end + 1;
  };

  /** Reads the whole lines in `bytes[start, end)`; `bytes[end - 1]` is a newline. */
  const readLines = (bytes: Buffer, start: number, end: number): void => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = start;
    while (at < end) {
      lines++;
      const id = expected < lastCount ? lastOrder[expected]! : -1;
      if (id !== -1 && hasKey(table, id, view, bytes, at, end) && table.seen[id] !== round && !ended) {
        const behind = at + table.keyLength[id]!;
        let value = 0;
        if (table.comment[id] === 1) cursor.at = behind;
        else value = readValue(bytes, behind, openMetrics);
        if (cursor.at !== -1 && bytes[cursor.at] === 0x0a) {
          at = cursor.at + 1;
          expected++;
          note(id, value);
          continue;
        }
      }
      at = readLine(bytes, at);
    }
  };

  const readCarried = (rest: Buffer): void => {
    const line = Buffer.concat([...carry, rest]);
    carry = [];
    carryBytes = 0;
    readLines(line, 0, line.length);
  };

  const discard = (): void => {
    for (const id of born) freeLine(table, id);
    born = [];
  };

  return {
    begin(format) {
      discard();
      openMetrics = format === 'openmetrics';
      round++;
      count = expected = lines = samples = bytesRead = invalidLines = carryBytes = 0;
      moved = ended = false;
      firstInvalid = undefined;
      carry = [];
    },
    write(chunk) {
      bytesRead += chunk.length;
      if (bytesRead > limits.bodyBytes) {
        throw new ScrapeFailure('too_large', `the page is over ${limits.bodyBytes} bytes`);
      }
      const end = chunk.lastIndexOf(0x0a) + 1;
      let start = 0;
      if (end > 0 && carryBytes > 0) {
        start = chunk.indexOf(0x0a) + 1;
        readCarried(chunk.subarray(0, start));
      }
      if (start < end) readLines(chunk, start, end);
      if (end === chunk.length) return;
      carry.push(Buffer.from(chunk.subarray(end)));
      carryBytes += chunk.length - end;
      if (carryBytes > maxLineBytes) {
        throw new ScrapeFailure('label_too_long', `line ${lines + 1} is over ${maxLineBytes} bytes`);
      }
    },
    end(wholeBody) {
      if (carryBytes > 0) {
        if (!wholeBody) throw new ScrapeFailure('cut_off', 'the page ends within a line');
        readCarried(newline);
      }
      if (openMetrics && !ended) throw new ScrapeFailure('invalid_body', 'the page has no # EOF');
      if (samples === 0 && invalidLines > 0) {
        throw new ScrapeFailure(
          'invalid_body',
          `no line is a sample; line ${firstInvalid?.line} is ${JSON.stringify(firstInvalid?.text)}`,
        );
      }
      const changed = moved || count !== lastCount;
      return { round, order, count, samples, bytes: bytesRead, invalidLines, firstInvalid, changed };
    },
    take(page) {
      [lastOrder, order] = [page.order, lastOrder];
      lastCount = page.count;
      [table.taken, table.incoming] = [table.incoming, table.taken];
      born = [];
    },
    discard,
  };
}
