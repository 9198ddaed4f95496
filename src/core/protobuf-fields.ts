/** One field of a message. */
export interface Field {
  readonly field: number;
  /** The number of a varint; 0 for other types. */
  readonly value: number;
  /** The contents of a length-delimited field, or the 8 or 4 bytes of a fixed one; empty for a varint. */
  readonly bytes: Buffer;
  /** The whole field with its tag. */
  readonly raw: Buffer;
}

const none = Buffer.alloc(0);

function malformed(): RangeError {
  return new RangeError('not a protobuf message: it ends within a field');
}

/** Reads a varint of up to 2^53; larger ones lose their low bits. `end` is the offset behind it. */
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
