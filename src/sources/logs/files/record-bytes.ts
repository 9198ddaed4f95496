/** The bytes of one record: numbers as varints, texts with one byte per character where that is enough. */
export interface RecordWriter {
  begin(): RecordWriter;
  byte(value: number): void;
  /** A whole number from 0 to 2^53 - 1. */
  number(value: number): void;
  /** Four bytes. */
  sum(value: number): void;
  /** An unsigned and a signed number of 64 bits. */
  id(value: bigint): void;
  time(value: bigint): void;
  /** A text, lone surrogates included; nothing but a mark if it is `usual`. */
  text(value: string, usual?: string): void;
  bytes(value: Uint8Array): void;
  end(): Buffer;
}

/** Each call reads what the writer's call of the same name has written; throws a `RangeError` on anything else. */
export interface RecordReader {
  byte(): number;
  number(): number;
  sum(): number;
  id(): bigint;
  time(): bigint;
  text(usual?: string): string;
  bytes(): Buffer;
  end(): void;
}

/** How a text is written, in the two lowest bits of the number before it; the others are its length in bytes. */
const textForms = { usual: 0, latin1: 1, utf16: 2 };
const wideLetter = /[^\0-\xff]/;
const encodings: readonly (BufferEncoding | undefined)[] = [undefined, 'latin1', 'utf16le'];

/** `begin` starts the next record: one buffer serves all of them. */
export function createRecordWriter(): RecordWriter {
  let buffer = Buffer.allocUnsafe(1024);
  let at = 0;
  const reserve = (length: number): number => {
    if (at + length > buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * buffer.length, at + length));
      buffer.copy(larger, 0, 0, at);
      buffer = larger;
    }
    at += length;
    return at - length;
  };
  const to: RecordWriter = {
    begin() {
      at = 0;
      return to;
    },
    byte(value) {
      const from = reserve(1);
      buffer[from] = value;
    },
    number(value) {
      let rest = value;
      for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) to.byte((rest % 0x80) | 0x80);
      to.byte(rest);
    },
    sum(value) {
      const from = reserve(4);
      buffer.writeUInt32LE(value, from);
    },
    id(value) {
      const from = reserve(8);
      buffer.writeBigUInt64LE(value, from);
    },
    time(value) {
      const from = reserve(8);
      buffer.writeBigInt64LE(value, from);
    },
    text(value, usual) {
      if (value === usual) return to.number(textForms.usual);
      const isWide = wideLetter.test(value);
      const length = isWide ? 2 * value.length : value.length;
      to.number(4 * length + (isWide ? textForms.utf16 : textForms.latin1));
      const from = reserve(length);
      buffer.write(value, from, isWide ? 'utf16le' : 'latin1');
    },
    bytes(value) {
      to.number(value.length);
      const from = reserve(value.length);
      buffer.set(value, from);
    },
    end: () => Buffer.from(buffer.subarray(0, at)),
  };
  return to;
}

export function createRecordReader(record: Buffer): RecordReader {
  let at = 0;
  const take = (length: number): number => {
    if (length > record.length - at) throw new RangeError(`ends after ${record.length} bytes`);
    at += length;
    return at - length;
  };
  const from: RecordReader = {
    byte: () => record[take(1)]!,
    number() {
      let value = 0;
      for (let unit = 1; unit <= Number.MAX_SAFE_INTEGER; unit *= 0x80) {
        const byte = from.byte();
        value += (byte & 0x7f) * unit;
        if (byte < 0x80 && value <= Number.MAX_SAFE_INTEGER) return value;
      }
      throw new RangeError('a number is too large');
    },
    sum: () => record.readUInt32LE(take(4)),
    id: () => record.readBigUInt64LE(take(8)),
    time: () => record.readBigInt64LE(take(8)),
    text(usual) {
      const mark = from.number();
      if (mark === textForms.usual && usual !== undefined) return usual;
      const encoding = encodings[mark % 4];
      if (encoding === undefined) throw new RangeError('a text has no form');
      const length = Math.floor(mark / 4);
      const begin = take(length);
      return record.toString(encoding, begin, begin + length);
    },
    bytes() {
      const length = from.number();
      const begin = take(length);
      return record.subarray(begin, begin + length);
    },
    end() {
      if (at !== record.length) throw new RangeError('bytes after its end');
    },
  };
  return from;
}
