import type { LineDropReason, SkipReason } from '../../../core/reasons.ts';
import type { LogEncoding } from '../options.ts';
import type { ConsoleReader } from './console-reader.ts';
import type { Fields } from './fields.ts';
import { type JsonReader, readObject } from './json-reader.ts';
import { invalid, newline, openBrace, spaceEnd, tooDeep, valueEnd } from './json-scan.ts';

/** A line may have this many bytes without its newline. A longer line is dropped as `too_long`. */
export const maxLineBytes = 1024 * 1024;

/** Counts classified lines. `lineBytes` is the line's share of the file, with its newline and container wrapping. */
export interface LineMetrics {
  entry(fields: Fields, lineBytes: number): void;
  /** A line that belongs to the console entry before it, such as a stack trace. */
  continuation(lineBytes: number): void;
  blank(lineBytes: number): void;
  dropped(reason: LineDropReason, lineBytes: number): void;
  /** Bytes that belong to no line. */
  skipped(reason: SkipReason, bytes: number): void;
  /** Adds what was batched to the series. Called after each chunk, before anything can be exposed or committed. */
  flush(): void;
}

/** What the count of a file's next line depends on besides the line itself. It is saved in the snapshot. */
export interface FileState {
  /**
   * The service of the last entry in a file that several services share, which also gets the continuations that
   * follow. Empty before the first entry and in files of one service.
   */
  lastService: string;
  /** Hashes of the last errors that the service's persistence client logged, oldest first. */
  clientErrors: number[];
}

/** The metrics of one file. */
export interface FileMetrics extends LineMetrics {
  readonly state: FileState;
}

/** Decides what each line is: an entry, a continuation, blank or dropped. */
export interface LineClassifier {
  /**
   * Classifies and counts the line that starts at `at` and ends with a newline. `extraBytes` is its share of the
   * file beyond its own bytes (container wrapping). Returns the index after the newline.
   */
  line(bytes: Buffer, view: DataView, at: number, extraBytes: number): number;
  /** Whether the last line was a console entry or one of its continuations, so that a continuation may follow. */
  inConsoleEntry: boolean;
}

/** The readers of a file's lines; both fill the same `fields`. */
export interface EntryReaders {
  fields: Fields;
  json: JsonReader;
  console: ConsoleReader;
}

/** Whether the line at `at`, which does not start with a brace, is one JSON value. */
function isJsonValue(bytes: Buffer, view: DataView, at: number, end: number): boolean {
  const after = valueEnd(bytes, view, at);
  if (after !== tooDeep) return after !== invalid && spaceEnd(bytes, after) === end;
  try {
    JSON.parse(bytes.toString('utf8', at, end));
    return true;
  } catch {
    return false;
  }
}

export function createLineClassifier(
  encoding: LogEncoding,
  { fields, json, console }: EntryReaders,
  metrics: LineMetrics,
): LineClassifier {
  const isJson = encoding === 'json';

  const jsonLine = (bytes: Buffer, view: DataView, at: number, end: number, lineBytes: number) => {
    const first = spaceEnd(bytes, at);
    if (bytes[first] === openBrace) {
      if (readObject(json, bytes, view, first) < 0) return metrics.dropped('invalid_json', lineBytes);
      classifier.inConsoleEntry = false;
      return metrics.entry(fields, lineBytes);
    }
    return metrics.dropped(isJsonValue(bytes, view, first, end) ? 'not_object' : 'invalid_json', lineBytes);
  };
  const consoleLine = (bytes: Buffer, view: DataView, at: number, end: number, lineBytes: number) => {
    if (console.read(bytes, view, at, end)) {
      classifier.inConsoleEntry = true;
      return metrics.entry(fields, lineBytes);
    }
    if (classifier.inConsoleEntry) return metrics.continuation(lineBytes);
    return metrics.dropped('not_console', lineBytes);
  };
  /** Classifies every line but a JSON entry of valid length, which `line` handles itself. */
  const otherLine = (bytes: Buffer, view: DataView, at: number, extraBytes: number): number => {
    const end = bytes.indexOf(newline, at);
    const lineBytes = end + 1 - at + extraBytes;
    if (end - at > maxLineBytes) metrics.dropped('too_long', lineBytes);
    else if (spaceEnd(bytes, at) === end) metrics.blank(lineBytes);
    else if (isJson || (encoding === 'auto' && bytes[at] === openBrace)) {
      jsonLine(bytes, view, at, end, lineBytes);
    } else consoleLine(bytes, view, at, end, lineBytes);
    return end + 1;
  };
  const classifier: LineClassifier = {
    inConsoleEntry: false,
    line(bytes, view, at, extraBytes) {
      if (bytes[at] === openBrace && encoding !== 'console') {
        const next = readObject(json, bytes, view, at);
        if (next > 0 && next - 1 - at <= maxLineBytes) {
          classifier.inConsoleEntry = false;
          metrics.entry(fields, next - at + extraBytes);
          return next;
        }
      }
      return otherLine(bytes, view, at, extraBytes);
    },
  };
  return classifier;
}
