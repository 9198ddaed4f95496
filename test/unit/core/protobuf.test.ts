import fc from 'fast-check';
import protobuf from 'protobufjs';
import { expect, test } from 'vitest';
import { createProtobufWriter, fieldsOf, packedOf } from '../../../src/core/protobuf.ts';
import { runs } from '../../size.ts';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message All {
    uint64 number = 1;
    double real = 2;
    fixed64 fixed = 3;
    fixed64 nano = 2047;
    bytes chunk = 5;
    string text = 16;
    repeated All inner = 100000;
    repeated uint32 packed = 8;
    repeated double reals = 9;
    repeated fixed64 fixeds = 10;
  }
`);
const All = root.lookupType('All');

const whole = fc.nat({ max: Number.MAX_SAFE_INTEGER });
const { message } = fc.letrec<{ message: Message }>((tie) => ({
  message: fc.record({
    number: whole,
    real: fc.double(),
    fixed: whole,
    nanoMs: fc.nat({ max: 2 ** 43 }),
    chunk: fc.uint8Array({ maxLength: 300 }),
    text: fc.string({ unit: 'grapheme', maxLength: 200 }),
    packed: fc.array(fc.nat({ max: 2 ** 32 - 1 })),
    reals: fc.array(fc.double()),
    fixeds: fc.array(whole),
    inner: fc.oneof(
      { depthSize: 'small' },
      fc.constant<Message[]>([]),
      fc.array(tie('message'), { maxLength: 4 }),
    ),
  }),
}));

interface Message {
  number: number;
  real: number;
  fixed: number;
  nanoMs: number;
  chunk: Uint8Array;
  text: string;
  packed: number[];
  reals: number[];
  fixeds: number[];
  inner: Message[];
}

type Writer = ReturnType<typeof createProtobufWriter>;

function write(writer: Writer, told: Message): void {
  writer.varint(1, told.number);
  writer.double(2, told.real);
  writer.fixed64(3, told.fixed);
  writer.nanoseconds(2047, told.nanoMs);
  writer.chunk(5, told.chunk);
  writer.text(16, told.text);
  for (const inner of told.inner) {
    writer.open(100_000);
    write(writer, inner);
    writer.close();
  }
  writer.open(8);
  for (const value of told.packed) writer.packed(value);
  writer.close();
  writer.open(9);
  for (const value of told.reals) writer.packedDouble(value);
  writer.close();
  writer.open(10);
  for (const value of told.fixeds) writer.packedFixed64(value);
  writer.close();
}

function asRead(told: Message): object {
  const { nanoMs, inner, chunk, number, fixed, fixeds, ...rest } = told;
  return {
    ...rest,
    number: String(number),
    fixed: String(fixed),
    fixeds: fixeds.map(String),
    nano: String(BigInt(nanoMs) * 1_000_000n),
    chunk: Buffer.from(chunk),
    inner: inner.map(asRead),
  };
}

test('another decoder reads what was written, from the smallest buffer on', () => {
  fc.assert(
    fc.property(message, (told) => {
      const writer = createProtobufWriter(1);
      write(writer, told);
      const options = { longs: String, defaults: true, bytes: Buffer } as const;
      expect(All.toObject(All.decode(writer.take()), options)).toEqual(asRead(told));
      expect(writer.bytes).toBe(0);
    }),
    { numRuns: 200 },
  );
});

test('the fields of a message put together are the message', () => {
  fc.assert(
    fc.property(message, (told) => {
      const writer = createProtobufWriter();
      write(writer, told);
      const bytes = writer.take();
      expect(Buffer.concat([...fieldsOf(bytes)].map(({ raw }) => raw)).equals(bytes)).toBe(true);
    }),
    { numRuns: 100 },
  );
});

test('any bytes are fields or a RangeError, never anything else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      try {
        expect([...fieldsOf(Buffer.from(bytes))].length).toBeLessThanOrEqual(bytes.length);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    }),
    { numRuns: runs(500) },
  );
});

test.each([0x7f, 0x80, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000])(
  'a part of %d bytes has a length that others read',
  (bytes) => {
    const writer = createProtobufWriter(16);
    // The field's tag and length are part of the content.
    writer.open(100_000);
    writer.chunk(5, new Uint8Array(bytes).fill(7));
    writer.close();
    const { inner } = All.decode(writer.take()) as unknown as { inner: { chunk: Uint8Array }[] };
    expect(inner.map(({ chunk }) => [chunk.length, chunk[0], chunk.at(-1)])).toEqual([[bytes, 7, 7]]);
  },
);

// These were encoded by hand: https://protobuf.dev/programming-guides/encoding
test.each<[string, number[], unknown]>([
  ['a varint of ten bytes', [0x08, ...Array(9).fill(0x80), 0x01], [[1, 2 ** 63]]],
  ['a varint of eleven bytes', [0x08, ...Array(10).fill(0x80), 0x01], 'ends within a field'],
  ['a varint without an end', [0x08, 0x80], 'ends within a field'],
  ['four bytes', [0x0d, 1, 2, 3, 4], [[1, 0]]],
  ['eight bytes', [0x09, 1, 2, 3, 4, 5, 6, 7, 8], [[1, 0]]],
  ['seven of eight bytes', [0x09, 1, 2, 3, 4, 5, 6, 7], 'ends within a field'],
  ['a text that ends early', [0x0a, 3, 1, 2], 'ends within a field'],
  ['a group', [0x0b, 0, 0, 0, 0], 'ends within a field'],
  ['a type that does not exist', [0x0e, 0, 0, 0, 0], 'ends within a field'],
])('%s', (_, bytes, expected) => {
  const read = () => [...fieldsOf(Buffer.from(bytes))].map(({ field, value }) => [field, value]);
  if (typeof expected === 'string') expect(read).toThrow(expected);
  else expect(read()).toEqual(expected);
});

test('a packed list has its numbers', () => {
  expect([...packedOf(Buffer.from([3, 0x8e, 0x02, 0x9e, 0xa7, 0x05]))]).toEqual([3, 270, 86_942]);
  expect([...packedOf(Buffer.alloc(0))]).toEqual([]);
});
