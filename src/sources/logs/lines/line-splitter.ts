import { AgentError, errorText } from '../../../core/errors.ts';
import type { ContainerFormat, LogEncoding } from '../options.ts';
import type { LineSink } from '../sink.ts';
import { createContainerLines, type PartialLine } from './container-format.ts';
import { viewOf } from './fields.ts';
import { newline } from './json-scan.ts';
import {
  createLineClassifier,
  type EntryReaders,
  type FileMetrics,
  maxLineBytes,
} from './line-classifier.ts';

interface LineSplitterOptions {
  path: string;
  container: ContainerFormat;
  encoding: LogEncoding;
  /** What `state()` of the file's splitter returned before a restart or a reload. */
  state?: Uint8Array;
}

/** Index of the last newline in `bytes[start, end)`, or `start - 1`. */
function lastNewline(bytes: Buffer, start: number, end: number): number {
  const found = bytes.lastIndexOf(newline, end - 1);
  return found < start ? start - 1 : found;
}

/** A hole may have gigabytes, so whole blocks are compared. */
const zeros = Buffer.alloc(4096);

function zerosEnd(bytes: Buffer, at: number, end: number): number {
  let i = at;
  while (i + zeros.length <= end && zeros.compare(bytes, i, i + zeros.length) === 0) i += zeros.length;
  while (i < end && bytes[i] === 0) i++;
  return i;
}

/**
 * Splits the bytes of one file into lines and counts them. NUL bytes at the start of a line are a hole that
 * copytruncate left under a writer that does not append. They count as skipped and belong to no line. NUL bytes
 * within a line are ordinary bytes.
 */
export function createLineSplitter(
  options: LineSplitterOptions,
  readers: EntryReaders,
  metrics: FileMetrics,
): LineSink {
  const restored = options.state ? decodeState(options.state, options.path) : undefined;
  const classifier = createLineClassifier(options.encoding, readers, metrics);
  const container = createContainerLines(
    restored?.format ?? options.container,
    classifier,
    metrics,
    restored?.partials,
  );
  let longLineBytes = restored?.longLineBytes ?? 0;
  classifier.inConsoleEntry = restored?.traceable ?? false;
  metrics.state.lastService = restored?.role ?? '';
  metrics.state.clientErrors = [...(restored?.clientErrors ?? [])];

  /** Consumes the rest of a line over the limit. Returns the index after the line, or `end` if the line continues. */
  const skipLongLine = (bytes: Buffer, at: number, end: number): number => {
    const found = bytes.indexOf(newline, at);
    if (found < 0 || found >= end) {
      longLineBytes += end - at;
      return end;
    }
    metrics.dropped('too_long', longLineBytes + found + 1 - at);
    longLineBytes = 0;
    return found + 1;
  };
  const skipHole = (bytes: Buffer, at: number, end: number): number => {
    const next = zerosEnd(bytes, at, end);
    if (next > at) metrics.skipped('nul_hole', next - at);
    return next;
  };
  const wrappedLine = (bytes: Buffer, view: DataView, at: number, extraBytes: number): number => {
    const end = bytes.indexOf(newline, at);
    if (end - at > maxLineBytes) metrics.dropped('too_long', end + 1 - at + extraBytes);
    else container.line(bytes, view, at, end, extraBytes);
    return end + 1;
  };
  /** Counts the lines whose newlines are in `bytes[at, last]`, and adds `extraBytes` to the size of each line. */
  const splitLines = (bytes: Buffer, at: number, last: number, extraBytes: number): number => {
    const view = viewOf(bytes);
    let i = at;
    while (i <= last) {
      if (bytes[i] === 0) i = skipHole(bytes, i, last);
      if (container.format === 'none') i = classifier.line(bytes, view, i, extraBytes);
      else i = wrappedLine(bytes, view, i, extraBytes);
    }
    return i;
  };
  return {
    write(bytes, start, end) {
      let at = longLineBytes > 0 ? skipLongLine(bytes, start, end) : start;
      at = splitLines(bytes, at, lastNewline(bytes, at, end), 0);
      if (longLineBytes === 0) at = skipHole(bytes, at, end);
      if (end - at > maxLineBytes) {
        longLineBytes = end - at;
        at = end;
      }
      metrics.flush();
      return at;
    },
    finish(bytes, start, end) {
      const at = skipHole(bytes, start, longLineBytes > 0 ? start : end);
      if (longLineBytes > 0) metrics.dropped('too_long', longLineBytes + end - at);
      else if (at < end) {
        const line = Buffer.concat([bytes.subarray(at, end), Buffer.of(newline)]);
        splitLines(line, 0, line.length - 1, -1);
      }
      longLineBytes = 0;
      container.finish();
      classifier.inConsoleEntry = false;
      metrics.state.lastService = '';
      metrics.state.clientErrors = [];
      container.format = options.container;
      metrics.flush();
    },
    skip(reason, bytes) {
      metrics.skipped(reason, bytes);
      metrics.flush();
    },
    state: () =>
      encodeState(
        {
          format: container.format,
          traceable: classifier.inConsoleEntry,
          role: metrics.state.lastService,
          clientErrors: metrics.state.clientErrors,
          longLineBytes,
          partials: container.partials,
        },
        options.container,
      ),
  };
}

/** The state of a splitter between two lines. The names of its fields are written to the snapshot and must not change. */
interface SplitterState {
  format: ContainerFormat;
  traceable: boolean;
  role: string;
  clientErrors: readonly number[];
  /** The number of bytes consumed so far of a line over the limit; 0 outside of such a line. */
  longLineBytes: number;
  partials: ReadonlyMap<string, PartialLine>;
}

interface EncodedHead extends Omit<SplitterState, 'partials'> {
  partials: { stream: string; fileBytes: number; isTooLong: boolean; length: number }[];
}

/** Encoded states of files that have nothing to save but their format. These are nearly all files. */
const idleStates = new Map<string, Uint8Array>();

/**
 * Encodes a state as a line of JSON, followed by the texts of the partial lines in the same order. Undefined if there is nothing
 * to save but the format that the configuration gives anyway.
 */
function encodeState(state: SplitterState, configured: ContainerFormat): Uint8Array | undefined {
  const isIdle =
    !state.traceable &&
    state.role === '' &&
    state.clientErrors.length === 0 &&
    state.longLineBytes === 0 &&
    state.partials.size === 0;
  if (isIdle && state.format === configured) return undefined;
  const known = isIdle ? idleStates.get(state.format) : undefined;
  if (known) return known;
  const head: EncodedHead = {
    ...state,
    partials: [...state.partials].map(([stream, { fileBytes, isTooLong, text }]) => ({
      stream,
      fileBytes,
      isTooLong,
      length: text.length,
    })),
  };
  const texts = [...state.partials.values()].map(({ text }) => text);
  const encoded = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...texts]);
  if (isIdle) idleStates.set(state.format, encoded);
  return encoded;
}

/** Decodes a state. Throws `AgentError` (`snapshot_corrupt`) for bytes that `encodeState` did not write. */
function decodeState(encoded: Uint8Array, path: string): SplitterState {
  const bytes = Buffer.from(encoded);
  const headEnd = bytes.indexOf('\n');
  try {
    const head = JSON.parse(bytes.toString('utf8', 0, headEnd)) as EncodedHead;
    let at = headEnd + 1;
    const partials = new Map<string, PartialLine>();
    for (const { stream, fileBytes, isTooLong, length } of head.partials) {
      partials.set(stream, { text: bytes.subarray(at, at + length), fileBytes, isTooLong });
      at += length;
    }
    return { ...head, partials };
  } catch (error) {
    throw new AgentError('snapshot_corrupt', { where: path, what: `held lines: ${errorText(error)}` }, error);
  }
}
