import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AgentError } from '../../../src/core/errors.ts';
import { decodePositions, encodePositions } from '../../../src/sources/logs/files/positions.ts';
import { newTrail, type Trail } from '../../../src/sources/logs/files/trail.ts';

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));

const trailOf = fc
  .record({
    path: fc.string({ unit: 'binary' }).map((name) => `/${name}\udc80`),
    home: fc.string(),
    dev: fc.bigInt(0n, 2n ** 64n - 1n),
    ino: fc.bigInt(0n, 2n ** 64n - 1n),
    offset: fc.maxSafeNat(),
    size: fc.maxSafeNat(),
    generation: fc.integer({ min: 1, max: 2 ** 40 }),
    mtimeNs: fc.bigInt(0n, 2n ** 62n),
    head: fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { maxLength: 7 }),
    tail: bytes(64),
    rest: bytes(100),
    carry: fc.option(bytes(100), { nil: undefined }),
    compressed: fc.boolean(),
    finished: fc.boolean(),
  })
  .map(
    ({
      path,
      home,
      dev,
      ino,
      offset,
      size,
      generation,
      mtimeNs,
      head,
      tail,
      rest,
      carry,
      compressed,
      finished,
    }) => {
      const at = { path, home, real: path };
      const trail = newTrail(at, { dev, ino, size, mtimeNs }, generation, [], compressed);
      return Object.assign(trail, {
        offset,
        size,
        mark: { head, tail },
        rest,
        restBytes: rest.length,
        carry,
        finished,
      });
    },
  );

const kept = ({
  path,
  home,
  real,
  dev,
  ino,
  offset,
  size,
  generation,
  mtimeNs,
  mark,
  rest,
  carry,
  ...trail
}: Trail) => {
  return [
    path,
    home,
    real,
    dev,
    ino,
    offset,
    size,
    generation,
    mtimeNs,
    mark,
    rest,
    carry,
    trail.compressed,
    trail.finished,
  ];
};

test('what was written is read', () => {
  fc.assert(
    fc.property(fc.array(trailOf, { maxLength: 5 }), fc.array(fc.string()), (trails, patterns) => {
      const section = encodePositions({ patterns, lastGeneration: 7, trails, count: trails.length });
      const read = decodePositions(section);
      expect([...read.patterns]).toEqual(patterns);
      expect(read.lastGeneration).toBe(7);
      expect(read.trails.map(kept)).toEqual(trails.map(kept));
    }),
  );
});

const sample = (() => {
  const trail = newTrail(
    { path: '/a', home: '/b', real: '/c' },
    { dev: 1n, ino: 2n, size: 3, mtimeNs: 4n },
    5,
    [],
  );
  return encodePositions({ patterns: ['/a*'], lastGeneration: 5, trails: [trail], count: 1 });
})();

test('cut off at any byte: a clear error', () => {
  for (let length = 0; length < sample.length; length++) {
    expect(() => decodePositions(sample.subarray(0, length))).toThrow(AgentError);
  }
});

test('any bytes: an error of ours, or positions', () => {
  const damaged = fc.tuple(fc.nat(sample.length - 1), fc.integer({ min: 0, max: 255 })).map(([at, byte]) => {
    const copy = Uint8Array.from(sample);
    copy[at] = byte;
    return copy;
  });
  fc.assert(
    fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 300 })), (section) => {
      try {
        decodePositions(section);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(AgentError);
        expect((thrown as AgentError).code).toBe('state_unreadable');
      }
    }),
    { numRuns: 2000 },
  );
});

test('another version is refused', () => {
  const other = Uint8Array.from(sample);
  other[0] = 99;
  expect(() => decodePositions(other)).toThrow('unknown version');
});
