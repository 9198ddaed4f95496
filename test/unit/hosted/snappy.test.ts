import fc from 'fast-check';
import snappy from 'snappyjs';
import { describe, expect, test } from 'vitest';
import { packSnappy, unpackSnappy } from '../../../src/reporters/hosted/wire/snappy.ts';
import { runs } from '../../size.ts';

/** Bytes with repetitions near and far, like real bodies. */
const bodies = fc
  .array(fc.record({ piece: fc.uint8Array({ minLength: 1, maxLength: 80 }), times: fc.nat({ max: 2000 }) }), {
    maxLength: 12,
  })
  .map((parts) =>
    Buffer.concat(parts.flatMap(({ piece, times }) => Array.from({ length: times }, () => piece))),
  );

describe('snappy blocks', () => {
  test('another decoder reads what ours packs', () => {
    fc.assert(
      fc.property(bodies, (body) => {
        expect(Buffer.from(snappy.uncompress(packSnappy(body))).equals(body)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test('ours reads what another encoder packs', () => {
    fc.assert(
      fc.property(bodies, (body) => {
        expect(unpackSnappy(Buffer.from(snappy.compress(body))).equals(body)).toBe(true);
      }),
      { numRuns: 150 },
    );
  });

  test.each([0, 1, 14, 15, 16, 59, 60, 61, 255, 256, 257, 65_535, 65_536, 65_537, 300_000])(
    '%i bytes, with and without repetitions',
    (length) => {
      const same = Buffer.alloc(length, 7);
      const varied = Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 2_654_435_761) >>> 13));
      for (const body of [same, varied]) {
        expect(Buffer.from(snappy.uncompress(packSnappy(body))).equals(body)).toBe(true);
        expect(unpackSnappy(packSnappy(body)).equals(body)).toBe(true);
      }
    },
  );

  test('text is packed about as tightly as another encoder packs it', () => {
    const text = Buffer.from(
      Array.from(
        { length: 5000 },
        (_, i) => `svc_requests{operation="Op${i % 97}",i="${i}"} ${i * 7}\n`,
      ).join(''),
    );
    expect(packSnappy(text).length).toBeLessThan(snappy.compress(text).length * 1.15);
  });

  test('any bytes are a block or a RangeError, never anything else', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          unpackSnappy(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
      { numRuns: runs(500) },
    );
  });
});
