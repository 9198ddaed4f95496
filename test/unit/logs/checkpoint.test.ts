import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AgentError } from '../../../src/core/errors.ts';
import {
  createPositionsEncoder,
  decodePositions,
  type Recorded,
  recordOf,
} from '../../../src/sources/logs/files/checkpoint.ts';
import { newGeneration, newPlace } from '../../../src/sources/logs/files/generation.ts';
import { runs } from '../../size.ts';

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));
const path = fc.string({ unit: 'binary' }).map((name) => `/${name}\udc80`);
const number32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

const file = {
  dev: fc.bigInt(0n, 2n ** 64n - 1n),
  ino: fc.bigInt(0n, 2n ** 64n - 1n),
  // -1 means that the copy is to be compared again.
  size: fc.integer({ min: -1, max: Number.MAX_SAFE_INTEGER - 1 }),
  mtimeNs: fc.bigInt(0n, 2n ** 62n),
};

const placeOf = fc
  .record({
    ...file,
    real: path,
    at: path,
    state: fc.constantFrom('live' as const, 'rotated' as const),
    isGzip: fc.boolean(),
  })
  .map((at) => Object.assign(newPlace(at), { readMtimeNs: at.mtimeNs }));

const recordedOf: fc.Arbitrary<Recorded> = fc.record({
  of: fc
    .record({
      group: path,
      home: path,
      number: fc.integer({ min: 1, max: 2 ** 40 }),
      size: fc.maxSafeNat(),
      chain: fc.record({
        offset: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        sum: fc.option(number32, { nil: undefined }),
        tail: bytes(64).map((tail) => tail.toString('latin1')),
        marks: fc.array(number32, { maxLength: 50 }),
      }),
      rest: bytes(100),
      parts: fc.array(fc.record({ size: fc.nat(63), sum: number32 }), { maxLength: 4 }),
      sinkState: fc.option(bytes(100), { nil: undefined }),
    })
    .map((of) => newGeneration({ ...of, restBytes: of.rest.length, claimants: [], status: 'followed' })),
  place: placeOf,
  copies: fc.array(fc.record({ ...file, path, isGzip: fc.boolean() }), { maxLength: 3 }),
});

const kept = ({ of, place, copies }: Recorded) => {
  const { group, home, number, size, chain, rest, parts, sinkState } = of;
  return { group, home, number, size, chain, rest, parts, sinkState, place, copies };
};

const encoded = (all: readonly Recorded[], patterns: readonly string[] = []) =>
  createPositionsEncoder()({ patterns, lastNumber: 7 }, all.map(recordOf));

const sample = encoded([
  {
    of: newGeneration({ number: 5, group: '/a', home: '/b', claimants: [] }),
    place: newPlace({
      dev: 1n,
      ino: 2n,
      size: 3,
      mtimeNs: 4n,
      real: '/c',
      at: '/a',
      state: 'live',
      isGzip: false,
    }),
    copies: [],
  },
]);

test('what was written is read', () => {
  fc.assert(
    fc.property(fc.array(recordedOf, { maxLength: 5 }), fc.array(fc.string()), (all, patterns) => {
      const read = decodePositions(encoded(all, patterns));
      expect(read.patterns).toEqual(patterns);
      expect(read.lastNumber).toBe(7);
      expect(read.generations.map(kept)).toEqual(all.map(kept));
    }),
  );
});

test('a deleted file that is still open has no inode after a restart', () => {
  const place = newPlace({
    dev: 1n,
    ino: 2n,
    size: 30,
    mtimeNs: 4n,
    real: '/a',
    at: '',
    state: 'unlinked',
    isGzip: false,
  });
  const chain = { marks: [], offset: 11, sum: 1, tail: '0123456789\n' };
  const of = newGeneration({ number: 5, group: '/a', home: '/a', claimants: [], status: 'followed', chain });
  const [read] = decodePositions(encoded([{ of, place, copies: [] }])).generations;
  expect(read).toMatchObject({ of: { status: 'lost', lostBy: 'vanished', size: 30 }, place: undefined });
});

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
    { numRuns: runs(2000) },
  );
});

test('another version is refused', () => {
  const other = Uint8Array.from(sample);
  other[0] = 99;
  expect(() => decodePositions(other)).toThrow('unknown version');
});
