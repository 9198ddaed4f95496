import fc from 'fast-check';
import { expect, test } from 'vitest';
import { datagramOf, packLines } from '../../../src/reporters/push/flush.ts';

const packed = (texts: readonly string[], flushBytes: number) => {
  const { packets, tooLong } = packLines(
    texts.map((text) => ({ text, bytes: new TextEncoder().encode(text).length })),
    flushBytes,
  );
  return { packets: packets.map((packet) => datagramOf(packet)), tooLong: tooLong.map(({ text }) => text) };
};

test.each([
  ['nothing', [], 10, [], []],
  ['one line', ['abc'], 10, ['abc'], []],
  ['two that just fit', ['abcd', 'efghi'], 10, ['abcd\nefghi'], []],
  ['two that do not', ['abcde', 'fghij'], 10, ['abcde', 'fghij'], []],
  ['a line of exactly the size', ['ab', '0123456789', 'cd'], 10, ['ab', '0123456789', 'cd'], []],
  ['a longer line', ['ab', '0123456789a', 'cd'], 10, ['ab\ncd'], ['0123456789a']],
  ['bytes, not characters', ['üüüüü', 'a'], 10, ['üüüüü', 'a'], []],
  ['one byte too many', ['üüüüüa', 'b'], 10, ['b'], ['üüüüüa']],
])('%s', (_, lines, flushBytes, packets, tooLong) => {
  const result = packed(lines, flushBytes);
  expect(result.packets.map((packet) => packet.toString('utf8'))).toEqual(packets);
  expect(result.tooLong).toEqual(tooLong);
});

test('whatever the lines: none is split, none out of order, no packet too long, none that had room', () => {
  const line = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 30 })
    .filter((text) => !text.includes('\n'));
  fc.assert(
    fc.property(fc.array(line, { maxLength: 60 }), fc.integer({ min: 1, max: 80 }), (lines, flushBytes) => {
      const { packets, tooLong } = packed(lines, flushBytes);
      const encoder = new TextEncoder();
      const bytes = (text: string) => encoder.encode(text).length;
      expect(tooLong).toEqual(lines.filter((text) => bytes(text) > flushBytes));
      const sent = packets.map((packet) => packet.toString('utf8').split('\n'));
      expect(sent.flat()).toEqual(lines.filter((text) => bytes(text) <= flushBytes));
      for (const [i, packet] of packets.entries()) {
        expect(packet.length).toBeLessThanOrEqual(flushBytes);
        const next = sent[i + 1]?.[0];
        if (next !== undefined) expect(packet.length + 1 + bytes(next)).toBeGreaterThan(flushBytes);
      }
    }),
  );
});
