import { cursor, fastValue, parseValue } from '../../../core/decimal.ts';
import { wideHash } from '../../../core/hashes.ts';
import type { RefusedLines } from '../../../core/registry/refused-series.ts';
import type { ScrapeLimits } from '../block.ts';
import { ScrapeFailure } from '../scrape-status.ts';
import { createBucketRun } from './bucket-run.ts';
import { createLineMemory, type LineUse } from './line-memory.ts';
import { brokenKey, longKey, readComment, scanBraces, scanKey } from './line-syntax.ts';
import {
  addLine,
  findLine,
  freeLine,
  hasKey,
  type LineTable,
  type Page,
  tableBytes,
  takeValues,
  trimLines,
} from './line-table.ts';
import { createPageOrder } from './page-order.ts';
import { createPageTally } from './page-tally.ts';

export type Exposition = 'text' | 'openmetrics';

/**
 * Reads pages of one target, one at a time, as their bytes arrive. A page mostly repeats the lines of the last page in the same
 * order. Each line is therefore compared with the next line of that page first, and only a line that differs is parsed and looked
 * up. Values go to `incoming` of the table, or to the refused lines. A failed page changes nothing else.
 *
 * Formats: text 0.0.4 and 1.0.0 (https://prometheus.io/docs/instrumenting/exposition_formats/), OpenMetrics 1.0.
 */
export interface PageReader {
  begin(format: Exposition): void;
  /** Reads the next bytes, which must stay valid only during the call. Throws `ScrapeFailure` for a page over its limits. */
  write(chunk: Buffer): void;
  /**
   * Ends the page. `wholeBody`: the transport guarantees that the body is complete. Otherwise a last line without
   * a newline may be cut off. Throws `ScrapeFailure` for an invalid body.
   */
  end(wholeBody: boolean): Page;
  /** Sets the page with which the next page is compared. */
  take(page: Page): void;
  /** Forgets the lines that only this failed page had. */
  discard(): void;
}

/** The bytes that contain a line, and a view of them. */
interface LineBytes {
  bytes: Buffer;
  view: DataView;
}

const maxLineBytes = 1024 * 1024;
/** After a failed page with more bytes of new lines than this, the table releases its memory. */
const manyBytes = 4 * 1024 * 1024;
const newline = Buffer.from('\n');

export function createPageReader(
  table: LineTable,
  refusedLines: RefusedLines,
  limits: ScrapeLimits,
  memory: LineUse = createLineMemory(Number.POSITIVE_INFINITY).open(),
): PageReader {
  let openMetrics = false;
  let ended = false;
  let hasAdded = false;
  const tally = createPageTally(limits);
  const lineOrder = createPageOrder(table);
  const leftOut = createBucketRun();

  const add = ({ bytes, view }: LineBytes, start: number, end: number, comment: boolean): number => {
    const id = addLine(table, view, bytes, start, end, comment);
    hasAdded = true;
    if (!memory.set(tableBytes(table))) {
      const mebibytes = Math.round(memory.limitBytes / 1024 ** 2);
      const what = `the lines of all pages take more than ${mebibytes} MiB, three tenths of the heap`;
      throw new ScrapeFailure('too_large', what);
    }
    return id;
  };

  const countLine = (id: number): void => {
    if (table.comment[id] === 0) tally.countSample();
    else tally.countComment();
  };

  /** Records a line that is not at the expected position; false if this page already has the line. */
  const noteMoved = (
    line: LineBytes,
    start: number,
    end: number,
    comment: boolean,
    value: number,
  ): boolean => {
    const { view } = line;
    let id = findLine(table, view, start, end);
    if (id !== -1) {
      if (!lineOrder.noteMoved(id, value)) return false;
    } else if (!comment && refusedLines.size > 0 && refusedLines.set(wideHash(view, start, end), value)) {
      tally.countSample();
      return true;
    } else {
      id = add(line, start, end, comment);
      lineOrder.noteNew(id, value);
    }
    countLine(id);
    return true;
  };

  const readCommentLine = (line: LineBytes, start: number, end: number): void => {
    const comment = readComment(line.bytes, start, end);
    if (comment === 'invalid') tally.skipLine(line.bytes, start, end);
    else if (comment?.about === 'end') ended = openMetrics;
    else if (comment !== undefined) noteMoved(line, start, end, true, 0);
  };

  /**
   * Handles a line that is known as refused without validating its key again: its hash equals the hash of a validated line. Only
   * lines without a timestamp, whose value follows the last blank, are handled.
   */
  const isRefusedLine = ({ bytes, view }: LineBytes, start: number, end: number): boolean => {
    let valueAt = end;
    while (valueAt > start && bytes[valueAt - 1] !== 0x20) valueAt--;
    const value = fastValue(bytes, valueAt);
    if (cursor.at !== end || !refusedLines.set(wideHash(view, start, valueAt), value)) return false;
    tally.countSample();
    if (refusedLines.countedNowhere) leftOut.begin(view, start, valueAt);
    return true;
  };

  const readSampleLine = (line: LineBytes, start: number, end: number): void => {
    const { bytes } = line;
    if (refusedLines.size > 0 && isRefusedLine(line, start, end)) return;
    const valueAt = scanKey(bytes, start, end, limits.labelBytes);
    if (valueAt === longKey) {
      const what = `line ${tally.lines}: a label is over ${limits.labelBytes} bytes`;
      throw new ScrapeFailure('label_too_long', what);
    }
    const value = valueAt === brokenKey ? 0 : readValue(bytes, valueAt, openMetrics);
    const isValid = valueAt !== brokenKey && cursor.at !== -1;
    if (!isValid || !noteMoved(line, start, valueAt, false, value)) tally.skipLine(bytes, start, end);
  };

  /** Parses the line at `at`; returns the index after its newline. */
  const readLine = (line: LineBytes, at: number): number => {
    const { bytes } = line;
    const end = bytes.indexOf(0x0a, at);
    const start = blanks(bytes, at);
    if (start === end) return end + 1;
    if (ended) throw new ScrapeFailure('invalid_body', 'the page continues after # EOF');
    if (bytes[start] === 0x23) readCommentLine(line, start, end);
    else readSampleLine(line, start, end);
    return end + 1;
  };

  /** Reads the complete lines in `bytes[start, end)`; `bytes[end - 1]` is a newline. */
  const readLines = (bytes: Buffer, start: number, end: number): void => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = start;
    while (at < end) {
      tally.lines++;
      if (!ended && leftOut.continues(bytes, view, at)) {
        tally.countSample();
        at = cursor.at + 1;
        continue;
      }
      const id = lineOrder.expected();
      if (id !== -1 && hasKey(table, id, view, at, end) && !lineOrder.has(id) && !ended) {
        const after = at + table.keys.keyLength[id]!;
        let value = 0;
        if (table.comment[id] === 1) cursor.at = after;
        else value = readValue(bytes, after, openMetrics);
        if (cursor.at !== -1 && bytes[cursor.at] === 0x0a) {
          at = cursor.at + 1;
          lineOrder.note(id, value);
          countLine(id);
          continue;
        }
      }
      at = readLine({ bytes, view }, at);
    }
  };

  const body = createBody(limits, { readLines, linesRead: () => tally.lines });

  const discard = (): void => {
    if (hasAdded) freeAdded(table, lineOrder.known());
    const isFit = memory.set(tableBytes(table));
    if (table.keys.arenaFreed > manyBytes || !isFit) trimLines(table);
    memory.set(tableBytes(table));
    hasAdded = false;
  };

  return {
    begin(format) {
      discard();
      openMetrics = format === 'openmetrics';
      ended = false;
      tally.begin();
      lineOrder.begin();
      body.begin();
    },
    write: body.write,
    end(wholeBody) {
      body.end(wholeBody);
      if (openMetrics && !ended) throw new ScrapeFailure('invalid_body', 'the page has no # EOF');
      const { samples, invalidLines, firstInvalid } = tally;
      if (samples === 0 && firstInvalid !== undefined) {
        const { line, text } = firstInvalid;
        throw new ScrapeFailure(
          'invalid_body',
          `no line is a sample; line ${line} is ${JSON.stringify(text)}`,
        );
      }
      return { ...lineOrder.page(), samples, bytes: body.bytes, invalidLines, firstInvalid };
    },
    take(page) {
      lineOrder.take(page);
      takeValues(table);
      memory.set(tableBytes(table));
      hasAdded = false;
    },
    discard,
  };
}

/** Frees the lines that are not among the known lines. */
function freeAdded(table: LineTable, known: Int32Array): void {
  const isKnown = new Uint8Array(table.keys.end);
  for (const id of known) isKnown[id] = 1;
  for (let id = 0; id < isKnown.length; id++) if (isKnown[id] === 0) freeLine(table, id);
}

/** The body of one page, which comes in chunks that may end within a line. */
interface Body {
  /** The number of bytes so far. */
  readonly bytes: number;
  begin(): void;
  write(chunk: Buffer): void;
  end(wholeBody: boolean): void;
}

interface BodyDeps {
  /** Reads the complete lines in `bytes[start, end)`; `bytes[end - 1]` is a newline. */
  readLines(bytes: Buffer, start: number, end: number): void;
  linesRead(): number;
}

function createBody({ bodyBytes }: ScrapeLimits, { readLines, linesRead }: BodyDeps): Body {
  let bytes = 0;
  let partial: Buffer[] = [];
  let partialBytes = 0;

  const readPartial = (rest: Buffer): void => {
    const line = Buffer.concat([...partial, rest]);
    partial = [];
    partialBytes = 0;
    readLines(line, 0, line.length);
  };

  return {
    get bytes() {
      return bytes;
    },
    begin() {
      bytes = partialBytes = 0;
      partial = [];
    },
    write(chunk) {
      bytes += chunk.length;
      if (bytes > bodyBytes) {
        throw new ScrapeFailure('too_large', `the page is over ${bodyBytes} bytes`);
      }
      const end = chunk.lastIndexOf(0x0a) + 1;
      let start = 0;
      if (end > 0 && partialBytes > 0) {
        start = chunk.indexOf(0x0a) + 1;
        readPartial(chunk.subarray(0, start));
      }
      if (start < end) readLines(chunk, start, end);
      if (end === chunk.length) return;
      partial.push(Buffer.from(chunk.subarray(end)));
      partialBytes += chunk.length - end;
      if (partialBytes > maxLineBytes) {
        throw new ScrapeFailure('label_too_long', `line ${linesRead() + 1} is over ${maxLineBytes} bytes`);
      }
    },
    end(wholeBody) {
      if (partialBytes === 0) return;
      if (!wholeBody) throw new ScrapeFailure('cut_off', 'the page ends within a line');
      readPartial(newline);
    },
  };
}

function blanks(bytes: Uint8Array, at: number): number {
  let i = at;
  while (bytes[i] === 0x20 || bytes[i] === 0x09) i++;
  return i;
}

function tokenEnd(bytes: Uint8Array, at: number): number {
  let i = at;
  while (bytes[i] !== 0x20 && bytes[i] !== 0x09 && bytes[i] !== 0x0a) i++;
  return i;
}

function isNumber(bytes: Buffer, start: number, end: number): boolean {
  return parseValue(bytes.toString('latin1', start, end)) !== undefined;
}

/** Whether ` # {labels} value [timestamp]` from the byte after the `#` is a complete exemplar. */
function isExemplar(bytes: Buffer, at: number, end: number): boolean {
  const brace = blanks(bytes, at);
  if (bytes[brace] !== 0x7b) return false;
  const after = scanBraces(bytes, brace + 1, end);
  if (after === brokenKey) return false;
  const value = blanks(bytes, after);
  const valueEnd = tokenEnd(bytes, value);
  if (!isNumber(bytes, value, valueEnd)) return false;
  const timestamp = blanks(bytes, valueEnd);
  const timestampEnd = tokenEnd(bytes, timestamp);
  return timestampEnd === end && (timestamp === end || isNumber(bytes, timestamp, timestampEnd));
}

/**
 * Reads the value at `at`. A timestamp and, in OpenMetrics, an exemplar may follow; both are validated and
 * discarded. Sets `cursor` to the index of the newline, or to -1 if the line is invalid. A newline must follow.
 */
function readValue(bytes: Buffer, at: number, openMetrics: boolean): number {
  let value: number | undefined = fastValue(bytes, at);
  if (cursor.at !== -1 && bytes[cursor.at] === 0x0a) return value;
  const valueEnd = tokenEnd(bytes, at);
  if (cursor.at !== valueEnd) value = parseValue(bytes.toString('latin1', at, valueEnd));
  const newline = value === undefined ? -1 : tailEnd(bytes, valueEnd, openMetrics);
  cursor.at = newline;
  return value ?? 0;
}

function tailEnd(bytes: Buffer, at: number, openMetrics: boolean): number {
  let i = blanks(bytes, at);
  if (bytes[i] !== 0x0a && bytes[i] !== 0x23) {
    const timestampEnd = tokenEnd(bytes, i);
    if (!isNumber(bytes, i, timestampEnd)) return -1;
    i = blanks(bytes, timestampEnd);
  }
  if (bytes[i] === 0x0a) return i;
  if (bytes[i] !== 0x23 || !openMetrics) return -1;
  const newline = bytes.indexOf(0x0a, i);
  return isExemplar(bytes, i + 1, newline) ? newline : -1;
}
