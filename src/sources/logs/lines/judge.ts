import type { LogEncoding } from '../options.ts';
import type { ConsoleReader } from './console-reader.ts';
import type { Fields } from './fields.ts';
import { type JsonReader, readObject } from './json-reader.ts';
import { invalid, newline, openBrace, spaceEnd, tooDeep, valueEnd } from './scan.ts';
import type { FileTally } from './tally.ts';

/** A line without its newline may be this long; what is longer is `too_long`. */
export const maxLineBytes = 1024 * 1024;

/** Says what a line is (entry, continuation, blank, dropped), exactly one of them, and has it counted. */
export interface Judge {
  /**
   * The line that begins at `at` and whose newline is there. `extraBytes` is what it takes in the file beside
   * its own bytes. Returns the index behind its newline.
   */
  line(bytes: Buffer, view: DataView, at: number, extraBytes: number): number;
  /** Whether the line before was a console entry or belonged to one, so that the next may too. */
  traceable: boolean;
}

export interface JudgeParts {
  encoding: LogEncoding;
  fields: Fields;
  json: JsonReader;
  console: ConsoleReader;
}

/** Whether the line at `at` is a JSON value, deep or not; it is known not to be an object. */
function isJsonValue(bytes: Buffer, view: DataView, at: number, end: number): boolean {
  const behind = valueEnd(bytes, view, at);
  if (behind !== tooDeep) return behind !== invalid && spaceEnd(bytes, behind) === end;
  try {
    JSON.parse(bytes.toString('utf8', at, end));
    return true;
  } catch {
    return false;
  }
}

export function createJudge({ encoding, fields, json, console }: JudgeParts, tally: FileTally): Judge {
  const isJson = encoding === 'json';

  const judgeJson = (bytes: Buffer, view: DataView, at: number, end: number, lineBytes: number) => {
    const first = spaceEnd(bytes, at);
    if (bytes[first] === openBrace) {
      if (readObject(json, bytes, view, first) < 0) return tally.dropped('invalid_json', lineBytes);
      judge.traceable = false;
      return tally.entry(fields, lineBytes);
    }
    return tally.dropped(isJsonValue(bytes, view, first, end) ? 'not_object' : 'invalid_json', lineBytes);
  };
  const judgeConsole = (bytes: Buffer, view: DataView, at: number, end: number, lineBytes: number) => {
    if (console.read(bytes, view, at, end)) {
      judge.traceable = true;
      return tally.entry(fields, lineBytes);
    }
    return judge.traceable ? tally.continuation(lineBytes) : tally.dropped('not_console', lineBytes);
  };
  /** Any line but a short JSON entry, which `line` has dealt with. */
  const judgeOther = (bytes: Buffer, view: DataView, at: number, extraBytes: number): number => {
    const end = bytes.indexOf(newline, at);
    const lineBytes = end + 1 - at + extraBytes;
    if (end - at > maxLineBytes) tally.dropped('too_long', lineBytes);
    else if (spaceEnd(bytes, at) === end) tally.blank(lineBytes);
    else if (isJson || (encoding === 'auto' && bytes[at] === openBrace)) {
      judgeJson(bytes, view, at, end, lineBytes);
    } else judgeConsole(bytes, view, at, end, lineBytes);
    return end + 1;
  };
  const judge: Judge = {
    traceable: false,
    line(bytes, view, at, extraBytes) {
      if (bytes[at] === openBrace && encoding !== 'console') {
        const next = readObject(json, bytes, view, at);
        if (next > 0 && next - 1 - at <= maxLineBytes) {
          judge.traceable = false;
          tally.entry(fields, next - at + extraBytes);
          return next;
        }
      }
      return judgeOther(bytes, view, at, extraBytes);
    },
  };
  return judge;
}
