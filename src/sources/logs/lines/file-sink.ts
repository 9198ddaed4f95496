import type { ContainerFormat } from '../options.ts';
import type { LineSink } from '../sink.ts';
import { decodeHeld, encodeHeld } from './carry.ts';
import { viewOf } from './fields.ts';
import { createJudge, type JudgeParts, maxLineBytes } from './judge.ts';
import { createPartials } from './partials.ts';
import { newline } from './scan.ts';
import type { FileTally } from './tally.ts';
import { createWrapping } from './wrapping.ts';

export interface FileSinkOptions {
  path: string;
  container: ContainerFormat;
  carry?: Uint8Array;
}

/** Index of the last newline in `bytes[start, end)`, or `start - 1`. */
function lastNewline(bytes: Buffer, start: number, end: number): number {
  let i = end - 1;
  while (i >= start && bytes[i] !== newline) i--;
  return i;
}

function zerosEnd(bytes: Buffer, at: number, end: number): number {
  let i = at;
  while (i < end && bytes[i] === 0) i++;
  return i;
}

/**
 * Cuts the bytes of one file into lines. NUL bytes at the beginning of a line are a hole that copytruncate
 * left under a writer that does not append: they are consumed as they come, counted as skipped, and are part
 * of no line; NUL bytes within a line are bytes like any other.
 */
export function createFileSink(options: FileSinkOptions, parts: JudgeParts, tally: FileTally): LineSink {
  const held = options.carry ? decodeHeld(options.carry, options.path) : undefined;
  const judge = createJudge(parts, tally);
  const partials = createPartials(judge, tally, held?.partials);
  const wrapping = createWrapping(held?.format ?? options.container, judge, partials);
  let longLineBytes = held?.longLineBytes ?? 0;
  judge.traceable = held?.traceable ?? false;
  tally.role = held?.role ?? '';

  /** Goes on in a line over the limit; returns the index behind it, or `end`. */
  const passLongLine = (bytes: Buffer, at: number, end: number): number => {
    const found = bytes.indexOf(newline, at);
    if (found < 0 || found >= end) {
      longLineBytes += end - at;
      return end;
    }
    tally.dropped('too_long', longLineBytes + found + 1 - at);
    longLineBytes = 0;
    return found + 1;
  };
  const passHole = (bytes: Buffer, at: number, end: number): number => {
    const next = zerosEnd(bytes, at, end);
    if (next > at) tally.skipped('nul_hole', next - at);
    return next;
  };
  const wrappedLine = (bytes: Buffer, view: DataView, at: number, extraBytes: number): number => {
    const end = bytes.indexOf(newline, at);
    if (end - at > maxLineBytes) tally.dropped('too_long', end + 1 - at + extraBytes);
    else wrapping.line(bytes, view, at, end, extraBytes);
    return end + 1;
  };
  /** Counts the lines whose newlines are in `bytes[at, last]`; `extraBytes` is what each takes beside. */
  const lines = (bytes: Buffer, at: number, last: number, extraBytes: number): number => {
    const view = viewOf(bytes);
    let i = at;
    while (i <= last) {
      if (bytes[i] === 0) i = passHole(bytes, i, last);
      if (wrapping.format === 'none') i = judge.line(bytes, view, i, extraBytes);
      else i = wrappedLine(bytes, view, i, extraBytes);
    }
    return i;
  };
  return {
    write(bytes, start, end) {
      let at = longLineBytes > 0 ? passLongLine(bytes, start, end) : start;
      at = lines(bytes, at, lastNewline(bytes, at, end), 0);
      if (longLineBytes === 0) at = passHole(bytes, at, end);
      if (end - at > maxLineBytes) {
        longLineBytes = end - at;
        at = end;
      }
      tally.settle();
      return at;
    },
    finish(bytes, start, end) {
      const at = passHole(bytes, start, longLineBytes > 0 ? start : end);
      if (longLineBytes > 0) tally.dropped('too_long', longLineBytes + end - at);
      else if (at < end) {
        const line = Buffer.concat([bytes.subarray(at, end), Buffer.of(newline)]);
        lines(line, 0, line.length - 1, -1);
      }
      longLineBytes = 0;
      partials.flush();
      judge.traceable = false;
      tally.role = '';
      wrapping.format = options.container;
      tally.settle();
    },
    skip(reason, bytes) {
      tally.skipped(reason, bytes);
      tally.settle();
    },
    carry: () =>
      encodeHeld(
        {
          format: wrapping.format,
          traceable: judge.traceable,
          role: tally.role,
          longLineBytes,
          partials: partials.held,
        },
        options.container,
      ),
  };
}
