import type { ContainerFormat } from '../options.ts';
import { createFields, createSlots, escapedText, plainText, textOf, viewOf } from './fields.ts';
import { createJsonReader, readObject } from './json-reader.ts';
import { newline, openBrace, spaceEnd } from './json-scan.ts';
import { type LineClassifier, type LineMetrics, maxLineBytes } from './line-classifier.ts';

/**
 * Unwraps lines that a container runtime wrote, and joins lines that it split:
 *
 * - CRI (Kubernetes): `<RFC 3339 time> stdout|stderr <tags> <text>`. Tags are separated by colons; the first is
 *   `P` for a partial line and `F` for a full line.
 * - Docker's json-file driver: `{"log":"text\n","stream":"stdout","time":"…"}`. A text without its newline is
 *   partial.
 *
 * A line that is not wrapped counts as it is.
 */
interface ContainerLines {
  /** The wrapping of the file; `auto` until the first line that is not blank decides. */
  format: ContainerFormat;
  /** Counts the line `bytes[at, end)`, whose newline is at `end`; `extraBytes` is added to its size in the file. */
  line(bytes: Buffer, view: DataView, at: number, end: number, extraBytes: number): void;
  /** Counts the pending partial lines as complete: the file is finished. */
  finish(): void;
  /** Partial lines by stream. */
  readonly partials: ReadonlyMap<string, PartialLine>;
}

/** The beginning of a line that the runtime split. */
export interface PartialLine {
  text: Buffer;
  /** Size of the line's parts in the file, wrapping included. */
  fileBytes: number;
  /** Whether the line is already over the limit; its text is discarded then. */
  isTooLong: boolean;
}

/** The text inside a wrapped line. Valid until the next line is unwrapped. */
interface WrappedText {
  bytes: Buffer;
  view: DataView;
  /** The text is `bytes[from, to)`, with a newline at `to`. */
  from: number;
  to: number;
  stream: string;
  /** The text continues in the stream's next line. */
  partial: boolean;
}

/** Unwraps the line `bytes[at, end)`, whose newline is at `end`; false if it does not have this format. */
type Unwrap = (bytes: Buffer, view: DataView, at: number, end: number, into: WrappedText) => boolean;

const space = 0x20;
/** An RFC 3339 time with nanoseconds and an offset has up to 35 characters. */
const maxTimeBytes = 40;
const streams = [
  { name: 'stdout', bytes: Buffer.from('stdout') },
  { name: 'stderr', bytes: Buffer.from('stderr') },
];

function streamAt(bytes: Buffer, at: number): string | undefined {
  for (const { name, bytes: text } of streams) {
    if (bytes[at + text.length] === space && text.equals(bytes.subarray(at, at + text.length))) return name;
  }
  return undefined;
}

const unwrapCri: Unwrap = (bytes, view, at, end, into) => {
  if (bytes[at + 4] !== 0x2d || bytes[at + 7] !== 0x2d || bytes[at + 10] !== 0x54) return false;
  const timeTo = bytes.indexOf(space, at);
  if (timeTo < 0 || timeTo - at > maxTimeBytes || timeTo >= end) return false;
  const stream = streamAt(bytes, timeTo + 1);
  if (stream === undefined) return false;
  const tag = timeTo + 1 + stream.length + 1;
  const isPartial = bytes[tag] === 0x50;
  if (!isPartial && bytes[tag] !== 0x46) return false;
  let tagTo = tag + 1;
  if (bytes[tagTo] === 0x3a) while (tagTo < end && bytes[tagTo] !== space) tagTo++;
  if (tagTo < end && bytes[tagTo] !== space) return false;
  into.bytes = bytes;
  into.view = view;
  into.from = Math.min(tagTo + 1, end);
  into.to = end;
  into.stream = stream;
  into.partial = isPartial;
  return true;
};

/** Unescapes the text into a buffer that all Docker lines of the file share. */
function createDockerUnwrap(): Unwrap {
  const slots = createSlots();
  const log = slots.of('log');
  const stream = slots.of('stream');
  const time = slots.of('time');
  const fields = createFields([log, stream, time]);
  const reader = createJsonReader(fields, new Map(slots.names.map((name, slot) => [name, slot])));
  const isText = (slot: number) => fields.kind[slot] === plainText || fields.kind[slot] === escapedText;
  let scratch = Buffer.alloc(0);
  let scratchView = viewOf(scratch);

  return (bytes, view, at, _end, into) => {
    if (bytes[at] !== openBrace || readObject(reader, bytes, view, at) < 0) return false;
    if (!isText(log) || !isText(stream) || !isText(time)) return false;
    const text = textOf(fields, log) as string;
    const maxBytes = text.length * 3 + 1;
    if (scratch.length < maxBytes) {
      scratch = Buffer.allocUnsafe(Math.max(2 * maxBytes, 64 * 1024));
      scratchView = viewOf(scratch);
    }
    const written = scratch.write(text);
    const isPartial = !text.endsWith('\n');
    into.bytes = scratch;
    into.view = scratchView;
    into.from = 0;
    into.to = isPartial ? written : written - 1;
    scratch[into.to] = newline;
    into.stream = textOf(fields, stream) as string;
    into.partial = isPartial;
    return true;
  };
}

interface PartialLines {
  readonly byStream: ReadonlyMap<string, PartialLine>;
  add(part: WrappedText, partBytes: number): void;
  /** Adds the last part of the stream's line and counts the whole line. */
  complete(part: WrappedText, partBytes: number): void;
  finish(): void;
}

const empty = Buffer.alloc(0);
const ending = Buffer.of(newline);

function createPartialLines(
  classifier: LineClassifier,
  metrics: LineMetrics,
  restored: ReadonlyMap<string, PartialLine>,
): PartialLines {
  const byStream = new Map(restored);
  const count = (stream: string, line: PartialLine) => {
    byStream.delete(stream);
    if (line.isTooLong) {
      metrics.dropped('too_long', line.fileBytes);
      return;
    }
    const whole = Buffer.concat([line.text, ending]);
    classifier.line(whole, viewOf(whole), 0, line.fileBytes - whole.length);
  };
  const extended = (part: WrappedText, partBytes: number): PartialLine => {
    const before = byStream.get(part.stream);
    const fileBytes = (before?.fileBytes ?? 0) + partBytes;
    const length = (before?.text.length ?? 0) + part.to - part.from;
    const isTooLong = before?.isTooLong === true || length > maxLineBytes;
    if (isTooLong) return { text: empty, fileBytes, isTooLong };
    const added = part.bytes.subarray(part.from, part.to);
    return { text: Buffer.concat(before ? [before.text, added] : [added]), fileBytes, isTooLong };
  };
  return {
    byStream,
    add: (part, partBytes) => byStream.set(part.stream, extended(part, partBytes)),
    complete: (part, partBytes) => count(part.stream, extended(part, partBytes)),
    finish() {
      for (const [stream, line] of byStream) count(stream, line);
    },
  };
}

export function createContainerLines(
  format: ContainerFormat,
  classifier: LineClassifier,
  metrics: LineMetrics,
  restored: ReadonlyMap<string, PartialLine> = new Map(),
): ContainerLines {
  const partials = createPartialLines(classifier, metrics, restored);
  const text: WrappedText = {
    bytes: empty,
    view: viewOf(empty),
    from: 0,
    to: 0,
    stream: '',
    partial: false,
  };
  let dockerUnwrap: Unwrap | undefined;
  const unwrapDocker: Unwrap = (...line) => {
    dockerUnwrap ??= createDockerUnwrap();
    return dockerUnwrap(...line);
  };

  /** Counts the text of a wrapped line. A text with newlines inside is several lines; the wrapping counts with the first line. */
  const countText = (extraBytes: number) => {
    const { bytes, view, to } = text;
    let at = classifier.line(bytes, view, text.from, extraBytes);
    while (at <= to) at = classifier.line(bytes, view, at, 0);
  };
  const detect = (bytes: Buffer, view: DataView, at: number, end: number): ContainerFormat => {
    if (unwrapCri(bytes, view, at, end, text)) return 'cri';
    return unwrapDocker(bytes, view, at, end, text) ? 'docker' : 'none';
  };
  const lines: ContainerLines = {
    format,
    partials: partials.byStream,
    line(bytes, view, at, end, extraBytes) {
      if (lines.format === 'auto' && spaceEnd(bytes, at) < end) lines.format = detect(bytes, view, at, end);
      const unwrap = lines.format === 'cri' ? unwrapCri : unwrapDocker;
      const isWrapped =
        lines.format !== 'none' && lines.format !== 'auto' && unwrap(bytes, view, at, end, text);
      if (!isWrapped) {
        classifier.line(bytes, view, at, extraBytes);
        return;
      }
      const lineBytes = end + 1 - at + extraBytes;
      if (text.partial) partials.add(text, lineBytes);
      else if (partials.byStream.has(text.stream)) partials.complete(text, lineBytes);
      else countText(lineBytes - (text.to + 1 - text.from));
    },
    finish: partials.finish,
  };
  return lines;
}
