import { cursor, fastValue, parseValue } from '../../../core/decimal.ts';
import { brokenKey, scanBraces } from './key.ts';

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

/** ` # {labels} value [timestamp]`, from behind the `#`; true if it is a whole exemplar. */
function isExemplar(bytes: Buffer, at: number, end: number): boolean {
  const brace = blanks(bytes, at);
  if (bytes[brace] !== 0x7b) return false;
  const behind = scanBraces(bytes, brace + 1, end);
  if (behind === brokenKey) return false;
  const value = blanks(bytes, behind);
  const valueEnd = tokenEnd(bytes, value);
  if (!isNumber(bytes, value, valueEnd)) return false;
  const timestamp = blanks(bytes, valueEnd);
  const timestampEnd = tokenEnd(bytes, timestamp);
  return timestampEnd === end && (timestamp === end || isNumber(bytes, timestamp, timestampEnd));
}

/**
 * The value that begins at `at`, and what may follow it up to the newline: a timestamp and, in OpenMetrics, an
 * exemplar. Both are checked and passed over. Leaves the index of the newline in `cursor`, or -1 if the line
 * is broken. A newline must stand somewhere behind `at`.
 */
export function readValue(bytes: Buffer, at: number, openMetrics: boolean): number {
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
