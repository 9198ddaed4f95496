/**
 * Writes protobuf messages (protobuf.dev/programming-guides/encoding) into one growing buffer. A nested message
 * is written in place between `open` and `close`; nothing is allocated per field. Zero and empty values are
 * written like any other: to leave out a default of proto3, the caller does not write the field.
 */
export interface ProtobufWriter {
  /** Number of bytes written so far. */
  readonly bytes: number;
  /** A non-negative integer up to 2^53. */
  varint(field: number, value: number): void;
  double(field: number, value: number): void;
  /** Prometheus' marker of a series that ended (a special NaN). */
  staleMarker(field: number): void;
  /** A non-negative integer up to 2^53 as fixed64. */
  fixed64(field: number, value: number): void;
  /** Milliseconds since the epoch as fixed64 nanoseconds. */
  nanoseconds(field: number, valueMs: number): void;
  chunk(field: number, bytes: Uint8Array): void;
  text(field: number, text: string): void;
  /** Begins a nested message, or a packed list. */
  open(field: number): void;
  close(): void;
  /** One number of a packed list. */
  packed(value: number): void;
  packedDouble(value: number): void;
  packedFixed64(value: number): void;
  /** Writes bytes that are whole fields already. */
  raw(bytes: Uint8Array): void;
  /** Returns a copy of what was written; the writer starts again. */
  take(): Buffer;
}

const two32 = 4_294_967_296;
const varintType = 0;
const fixed64Type = 1;
const lengthType = 2;
/** The longest tag, the longest varint, and 8 bytes to spare. */
const roomPerField = 24;

/** Bytes that the varint of a length below 2^35 takes. */
function lengthBytes(length: number): number {
  if (length < 0x80) return 1;
  if (length < 0x4000) return 2;
  if (length < 0x20_0000) return 3;
  return length < 0x1000_0000 ? 4 : 5;
}

export function createProtobufWriter(initialBytes = 65_536): ProtobufWriter {
  let buffer = Buffer.allocUnsafe(initialBytes);
  let at = 0;
  /** The positions at which the contents of the open messages begin, one byte after their lengths. */
  const opened: number[] = [];

  const room = (count: number): void => {
    if (at + count <= buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(buffer.length * 2, at + count));
    buffer.copy(grown, 0, 0, at);
    buffer = grown;
  };
  const put = (value: number): void => {
    let rest = value;
    while (rest >= 0x8000_0000) {
      buffer[at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    while (rest > 127) {
      buffer[at++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    buffer[at++] = rest;
  };
  const tag = (field: number, type: number): void => {
    room(roomPerField);
    put(field * 8 + type);
  };
  const put64 = (low: number, high: number): void => {
    buffer.writeUInt32LE(low, at);
    buffer.writeUInt32LE(high, at + 4);
    at += 8;
  };
  const raw = (bytes: Uint8Array): void => {
    room(bytes.length);
    buffer.set(bytes, at);
    at += bytes.length;
  };

  return {
    get bytes() {
      return at;
    },
    varint(field, value) {
      tag(field, varintType);
      put(value);
    },
    double(field, value) {
      tag(field, fixed64Type);
      at = buffer.writeDoubleLE(value, at);
    },
    staleMarker(field) {
      tag(field, fixed64Type);
      put64(2, 0x7ff0_0000);
    },
    fixed64(field, value) {
      tag(field, fixed64Type);
      put64(value % two32, Math.floor(value / two32));
    },
    nanoseconds(field, valueMs) {
      tag(field, fixed64Type);
      // The product has more than 53 bits: 20 bits of the time are multiplied separately.
      const upper = Math.floor(valueMs / 1_048_576) * 1e6;
      const lower = (upper % 4096) * 1_048_576 + (valueMs % 1_048_576) * 1e6;
      put64(lower % two32, Math.floor(upper / 4096) + Math.floor(lower / two32));
    },
    chunk(field, bytes) {
      tag(field, lengthType);
      put(bytes.length);
      raw(bytes);
    },
    text(field, text) {
      const size = Buffer.byteLength(text);
      tag(field, lengthType);
      put(size);
      room(size);
      at += buffer.write(text, at);
    },
    open(field) {
      tag(field, lengthType);
      at += 1;
      opened.push(at);
    },
    close() {
      const from = opened.pop()!;
      const length = at - from;
      const more = lengthBytes(length) - 1;
      if (more > 0) {
        room(more);
        buffer.copyWithin(from + more, from, at);
      }
      at = from - 1;
      put(length);
      at += length;
    },
    packed(value) {
      room(roomPerField);
      put(value);
    },
    packedDouble(value) {
      room(roomPerField);
      at = buffer.writeDoubleLE(value, at);
    },
    packedFixed64(value) {
      room(roomPerField);
      put64(value % two32, Math.floor(value / two32));
    },
    raw,
    take() {
      const taken = Buffer.from(buffer.subarray(0, at));
      at = 0;
      return taken;
    },
  };
}

interface Field {
  readonly field: number;
  /** The number of a varint; 0 for other types. */
  readonly value: number;
  /** The contents of a length-delimited field, or the 8 or 4 bytes of a fixed-length field; empty for a varint. */
  readonly bytes: Buffer;
  /** The whole field with its tag. */
  readonly raw: Buffer;
}

const none = Buffer.alloc(0);

function malformed(): RangeError {
  return new RangeError('not a protobuf message: it ends within a field');
}

/** Reads a varint of up to 2^53; larger ones lose their low bits. `end` is the offset after it. */
function readVarint(bytes: Buffer, from: number): { value: number; end: number } {
  let value = 0;
  let scale = 1;
  for (let at = from; at < bytes.length && at < from + 10; at++) {
    const byte = bytes[at]!;
    value += (byte & 127) * scale;
    scale *= 128;
    if (byte < 128) return { value, end: at + 1 };
  }
  throw malformed();
}

/**
 * The fields of a message in their order, as views of its bytes. Throws `RangeError` if it is not a message. It
 * allocates: use it for batches that are split or converted, and for responses, which are rare.
 */
export function* fieldsOf(bytes: Buffer): Generator<Field> {
  let at = 0;
  while (at < bytes.length) {
    const tag = readVarint(bytes, at);
    const field = Math.floor(tag.value / 8);
    const type = tag.value % 8;
    if (type === 0) {
      const { value, end } = readVarint(bytes, tag.end);
      yield { field, value, bytes: none, raw: bytes.subarray(at, end) };
      at = end;
      continue;
    }
    const length = type === 2 ? readVarint(bytes, tag.end) : { value: type === 1 ? 8 : 4, end: tag.end };
    if (type !== 1 && type !== 2 && type !== 5) throw malformed();
    const end = length.end + length.value;
    if (end > bytes.length) throw malformed();
    yield { field, value: 0, bytes: bytes.subarray(length.end, end), raw: bytes.subarray(at, end) };
    at = end;
  }
}

/** The numbers of a packed list of varints. */
export function* packedOf(bytes: Buffer): Generator<number> {
  for (let at = 0; at < bytes.length; ) {
    const { value, end } = readVarint(bytes, at);
    yield value;
    at = end;
  }
}
