import { createFields, createSlots, escapedText, plainText, textOf, viewOf } from './fields.ts';
import { createJsonReader, readObject } from './json-reader.ts';
import { newline, openBrace } from './scan.ts';
import type { Unwrap } from './unwrapped.ts';

/**
 * Unwraps `{"log":"text\n","stream":"stdout","time":"…"}`, the lines of Docker's json-file driver; a text
 * without its newline is partial. The text lands in a buffer of the unwrapper's own.
 */
export function createDockerUnwrap(): Unwrap {
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
    const most = text.length * 3 + 1;
    if (scratch.length < most) {
      scratch = Buffer.allocUnsafe(Math.max(2 * most, 64 * 1024));
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
