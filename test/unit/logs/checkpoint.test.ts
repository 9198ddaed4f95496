import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AgentError } from '../../../src/core/errors.ts';
import {
  createLetGoEncoder,
  decodePositions,
  encodePositions,
} from '../../../src/sources/logs/files/checkpoint.ts';
import {
  createTracker,
  type LetGo,
  newTrackedFile,
  type TrackedFile,
} from '../../../src/sources/logs/files/tracked-file.ts';
import { manualClock } from '../../clock.ts';
import { runs } from '../../size.ts';

const bytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));

const fileOf = fc
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
    sinkState: fc.option(bytes(100), { nil: undefined }),
    compressed: fc.boolean(),
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
      sinkState,
      compressed,
    }) => {
      const at = { path, home, real: path };
      const file = newTrackedFile(at, { dev, ino, size, mtimeNs }, generation, [], compressed);
      return Object.assign(file, {
        offset,
        size,
        fingerprint: { head, tail },
        rest,
        restBytes: rest.length,
        sinkState,
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
  fingerprint,
  rest,
  sinkState,
  ...file
}: TrackedFile) => {
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
    fingerprint,
    rest,
    sinkState,
    file.compressed,
  ];
};

const sample = (() => {
  const at = { path: '/a', home: '/b', real: '/c' };
  const file = newTrackedFile(at, { dev: 1n, ino: 2n, size: 3, mtimeNs: 4n }, 5, []);
  return encodePositions({ patterns: ['/a*'], lastGeneration: 5, files: [file] }, Buffer.alloc(4));
})();

const nothing = createLetGoEncoder(createTracker(manualClock()));

test('what was written is read', () => {
  fc.assert(
    fc.property(fc.array(fileOf, { maxLength: 5 }), fc.array(fc.string()), (files, patterns) => {
      const section = encodePositions({ patterns, lastGeneration: 7, files }, nothing());
      const read = decodePositions(section);
      expect(read.patterns).toEqual(patterns);
      expect(read.lastGeneration).toBe(7);
      expect(read.files.map(kept)).toEqual(files.map(kept));
    }),
  );
});

const letGoOf = fc.record({
  path: fc.string({ unit: 'binary' }).map((name) => `/${name}\udc80`),
  dev: fc.bigInt(0n, 2n ** 64n - 1n),
  ino: fc.bigInt(0n, 2n ** 62n),
  generation: fc.integer({ min: 0, max: 2 ** 40 }),
  size: fc.maxSafeNat(),
  mtimeNs: fc.bigInt(0n, 2n ** 62n),
  offset: fc.maxSafeNat(),
  tailSum: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  tailLength: fc.nat(64),
  head: fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { maxLength: 9 }),
  lostBy: fc.constantFrom(undefined, 'vanished' as const, 'truncated' as const),
});

const byInode = (a: LetGo, b: LetGo) => Number(a.ino > b.ino) - Number(a.ino < b.ino);

test('what was let go is read', () => {
  const uniqueFiles = fc.uniqueArray(letGoOf, { maxLength: 20, selector: ({ ino }) => ino });
  fc.assert(
    fc.property(uniqueFiles, (files) => {
      const tracker = createTracker(manualClock());
      const known = files.map((file): LetGo => ({ ...file, copyOf: undefined, absences: 0 }));
      for (const file of known) tracker.letGo(file);
      const positions = { patterns: [], lastGeneration: 1, files: [] };
      const section = encodePositions(positions, createLetGoEncoder(tracker)());
      expect([...decodePositions(section).letGo].sort(byInode)).toEqual(known.sort(byInode));
    }),
  );
});

test('a copy is recorded with its original', () => {
  const tracker = createTracker(manualClock());
  const stat = { dev: 1n, ino: 2n, size: 3, mtimeNs: 4n };
  const original = newTrackedFile({ path: '/a', home: '/a', real: '/a' }, stat, 5, []);
  tracker.add(original);
  const content = { offset: 3, head: [], tailLength: 0, tailSum: 0 };
  tracker.letGo({
    ...stat,
    ...content,
    path: '/a',
    ino: 9n,
    generation: 0,
    copyOf: original,
    absences: 0,
  });
  const positions = { patterns: [], lastGeneration: 5, files: [original] };
  const { files, letGo } = decodePositions(encodePositions(positions, createLetGoEncoder(tracker)()));
  expect(letGo[0]!.copyOf).toBe(files[0]);
});

test('the size as last looked up is read; older sections do not have it, and their one size stands for both', () => {
  const stat = { dev: 1n, ino: 2n, size: 300, mtimeNs: 4n };
  const file = newTrackedFile({ path: '/a', home: '/a', real: '/a' }, stat, 5, []);
  Object.assign(file, { offset: 100, size: 200 });
  const section = Buffer.from(encodePositions({ patterns: [], lastGeneration: 5, files: [file] }, nothing()));
  const sizesIn = (bytes: Buffer) => decodePositions(bytes).files.map(({ size, nowSize }) => [size, nowSize]);
  expect(sizesIn(section)).toEqual([[200, 300]]);
  // The record of the one file is the last but for the count of groups, and its length is before it.
  const lengthAt = 8 + section.readUInt32LE(4) + 4;
  const length = section.readUInt32LE(lengthAt);
  const end = lengthAt + 4 + length;
  const older = Buffer.concat([section.subarray(0, end - 8), section.subarray(end)]);
  older.writeUInt32LE(length - 8, lengthAt);
  expect(sizesIn(older)).toEqual([[200, 200]]);
});

test('version 1, which did not record what was let go, is read', () => {
  const section = Buffer.from(sample);
  section.writeUInt32LE(1, 0);
  const { files, hasLetGo } = decodePositions(section.subarray(0, section.length - 4));
  expect(files).toHaveLength(1);
  expect(hasLetGo).toBe(false);
});

test('version 2, which took the sums of other lengths, is read: of each beginning the first 64 bytes are known', () => {
  const head = [1, 2, 3, 4, 5];
  const tracker = createTracker(manualClock());
  const row = { path: '/a', dev: 1n, ino: 2n, generation: 1, size: 7, mtimeNs: 5n, offset: 7 };
  const rest = { tailLength: 3, tailSum: 9, copyOf: undefined, absences: 0 };
  tracker.letGo({ ...row, ...rest, head });
  const stat = { dev: 1n, ino: 3n, size: 10, mtimeNs: 1n };
  const file = newTrackedFile({ path: '/a', home: '/a', real: '/a' }, stat, 5, []);
  file.fingerprint = { head, tail: Buffer.alloc(0) };
  const positions = { patterns: [], lastGeneration: 5, files: [file] };
  const now = Buffer.from(encodePositions(positions, createLetGoEncoder(tracker)()));
  // Its rows end four sums earlier.
  const section = now.subarray(0, now.length - 16);
  section.writeUInt32LE(2, 0);
  const { files, letGo } = decodePositions(section);
  expect(files[0]!.fingerprint.head).toEqual([1, 2, 3]);
  expect(letGo).toEqual([{ ...row, ...rest, head: [1, 2, 3] }]);
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
