import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addKey,
  createByteTable,
  findKey,
  firstKey,
  isKeyAt,
  isSame,
  nextKey,
  packColumn,
  packTable,
  removeKey,
  trimTable,
  writeKey,
} from '../../../src/core/byte-table.ts';
import { hashByte, hashRange, hashSeed } from '../../../src/core/hashes.ts';
import { runs } from '../../size.ts';

/** A table of whole texts, through the functions that its users call. */
function texts(hashOf = (view: DataView, length: number) => hashRange(hashSeed, view, 0, length)) {
  const table = createByteTable();
  const of = (text: string) => {
    const bytes = Buffer.from(text);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    return { bytes, view, hash: hashOf(view, bytes.length) };
  };
  return {
    table,
    find(text: string) {
      const { bytes, view, hash } = of(text);
      return findKey(table, view, 0, bytes.length, hash);
    },
    add(text: string) {
      const { bytes, hash } = of(text);
      const id = addKey(table, hash, bytes.length);
      writeKey(table, id, 0, bytes, 0, bytes.length);
      return id;
    },
  };
}

const operation = fc.record({ add: fc.boolean(), text: fc.string({ maxLength: 12, unit: 'grapheme' }) });

test.each([
  ['its own hash', undefined],
  ['one hash for all keys', () => 7],
])('holds what a map of texts holds, with %s', (_, hashOf) => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 400 }), (operations) => {
      const { table, find, add } = texts(hashOf);
      const model = new Map<string, number>();
      for (const { add: adds, text } of operations) {
        const known = model.get(text);
        expect(find(text)).toBe(known ?? -1);
        if (adds && known === undefined) {
          const id = add(text);
          expect([...model.values()]).not.toContain(id);
          model.set(text, id);
        } else if (!adds && known !== undefined) {
          removeKey(table, known);
          model.delete(text);
        }
        expect(table.size).toBe(model.size);
      }
      for (const [text, id] of model) expect(find(text)).toBe(id);
    }),
  );
});

test('grows to 100,000 keys and gives the memory of removed ones to new ones', () => {
  const { table, find, add } = texts();
  const name = (i: number) => `svc_requests{operation="Op${i}",domain="d${i % 17}"}`;
  const ids = Array.from({ length: 100_000 }, (_, i) => add(name(i)));
  expect(new Set(ids).size).toBe(100_000);
  expect(ids.every((id, i) => find(name(i)) === id)).toBe(true);
  const full = table.arena.length;
  for (let round = 1; round < 3; round++) {
    for (const id of ids) removeKey(table, id);
    ids.splice(0, ids.length, ...Array.from({ length: 100_000 }, (_, i) => add(name(i + round * 100_000))));
  }
  expect(table.size).toBe(100_000);
  expect(table.end).toBe(100_000);
  expect(table.arena.length).toBeLessThan(full * 2);
  expect(find(name(0))).toBe(-1);
  expect(find(name(299_999))).toBe(ids.at(-1));
});

test('when it is trimmed, the keys that are left keep their ids, and the memory is what these keys need', () => {
  const { table, find, add } = texts();
  const ids = Array.from({ length: 500 }, (_, i) => add(`key ${i} ${'x'.repeat(i % 30)}`));
  const name = (id: number) => `key ${id} ${'x'.repeat(id % 30)}`;
  const left = ids.filter((id) => id < 100 && id % 3 !== 0);
  for (const id of ids) if (!left.includes(id)) removeKey(table, id);
  expect(trimTable(table)).toBe(true);
  // The last id in use is 98, so 99 ids fit into the next power of two.
  expect([table.size, table.end]).toEqual([66, 99]);
  const columns = [table.keyAt, table.keyLength, table.hash, table.next];
  expect(columns.map(({ length }) => length)).toEqual([128, 128, 128, 128]);
  expect(table.heads.length).toBe(128);
  expect(table.arenaUsed).toBe(left.reduce((sum, id) => sum + name(id).length, 0));
  expect(table.arena.length).toBe(4096);
  for (const id of ids) expect(find(name(id))).toBe(left.includes(id) ? id : -1);
  const again = Array.from({ length: 60 }, (_, i) => add(`again ${i}`));
  const gaps = Array.from({ length: 33 }, (_, i) => i * 3);
  const behind = Array.from({ length: 27 }, (_, i) => 99 + i);
  expect(again.toSorted((a, b) => a - b)).toEqual([...gaps, ...behind]);
  for (const id of left) expect(find(name(id))).toBe(id);
  for (const [i, id] of again.entries()) expect(find(`again ${i}`)).toBe(id);
  expect(trimTable(table)).toBe(false);
});

test('the arena is replaced by a larger one only when a key does not fit', () => {
  const { table, find, add } = texts();
  const first = add('x'.repeat(4000));
  const { arena } = table;
  const second = add('y'.repeat(96));
  expect(table.arena).toBe(arena);
  removeKey(table, second);
  const third = add('z');
  // There is room for a quarter more than the remaining keys.
  expect(table.arena.length).toBe(5001);
  expect([find('x'.repeat(4000)), find('z')]).toEqual([first, third]);
});

test('compares keys range by range', () => {
  const table = createByteTable();
  const bytes = Buffer.from('requests:17|c|#op:start');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [colon, bar] = [8, 11];
  let hash = hashSeed;
  for (const byte of bytes.subarray(0, colon)) hash = hashByte(hash, byte);
  for (const byte of bytes.subarray(bar)) hash = hashByte(hash, byte);
  const id = addKey(table, hash, colon + bytes.length - bar);
  writeKey(table, id, 0, bytes, 0, colon);
  writeKey(table, id, colon, bytes, bar, bytes.length);
  expect(firstKey(table, hash)).toBe(id);
  expect(nextKey(table, id, hash)).toBe(-1);
  expect(isKeyAt(table, id, 0, view, 0, colon)).toBe(true);
  expect(isKeyAt(table, id, colon, view, bar, bytes.length)).toBe(true);
  expect(isKeyAt(table, id, colon + 1, view, bar, bytes.length)).toBe(false);
  expect(isKeyAt(table, id, colon, view, bar - 1, bytes.length - 1)).toBe(false);
});

test('two ranges are the same if, and only if, their bytes are: also where eight of them are a NaN, 0 or -0 as a double', () => {
  const zeros = [0, 0, 0, 0, 0, 0, 0, 0];
  const patterns = [
    zeros,
    [...zeros.slice(1), 0x80],
    [1, 0, 0, 0, 0, 0, 0xf8, 0x7f],
    [2, 0, 0, 0, 0, 0, 0xf8, 0xff],
  ];
  const piece = fc.oneof(fc.constantFrom(...patterns), fc.array(fc.nat(255), { maxLength: 12 }));
  const bytes = fc.array(piece, { maxLength: 5 }).map((pieces) => Buffer.from(pieces.flat()));
  fc.assert(
    fc.property(bytes, bytes, fc.nat(7), fc.boolean(), (one, two, before, isEqual) => {
      const other = Buffer.concat([Buffer.alloc(before), isEqual ? one : two]);
      const length = Math.min(one.length, other.length - before);
      const viewOf = ({ buffer, byteOffset, byteLength }: Buffer) =>
        new DataView(buffer, byteOffset, byteLength);
      expect(isSame(viewOf(one), 0, viewOf(other), before, length)).toBe(
        one.subarray(0, length).equals(other.subarray(before, before + length)),
      );
    }),
    { numRuns: runs(2000) },
  );
});

test('when few keys are left, packing gives them the lowest ids in their order, and columns move along', () => {
  const { table, find, add } = texts();
  const ids = Array.from({ length: 1000 }, (_, i) => add(`key ${i}`));
  const column = Int32Array.from(ids, (id) => id * 10);
  for (const id of ids) if (id % 10 !== 9) removeKey(table, id);
  const newIds = packTable(table)!;
  packColumn(column, newIds);
  expect([table.size, table.end, table.keyAt.length]).toEqual([100, 100, 128]);
  for (const id of ids) expect(find(`key ${id}`)).toBe(id % 10 === 9 ? (id - 9) / 10 : -1);
  expect(Array.from(column.subarray(0, 100))).toEqual(Array.from({ length: 100 }, (_, n) => n * 100 + 90));
  expect(Array.from(newIds.subarray(0, 21))).toEqual(
    Array.from({ length: 21 }, (_, id) => (id % 10 === 9 ? (id - 9) / 10 : -1)),
  );
  expect(add('another')).toBe(100);
  expect(packTable(table)).toBeUndefined();
});

test('columns that are large grow by a quarter, and each key is found', () => {
  const { table, find, add } = texts();
  const lengths = new Set<number>();
  for (let i = 0; i < 110_000; i++) {
    add(`key ${i}`);
    lengths.add(table.keyAt.length);
  }
  expect([...lengths].slice(-5)).toEqual([32_768, 65_536, 81_920, 102_400, 128_000]);
  for (const i of [0, 65_535, 65_536, 81_920, 102_400, 109_999]) expect(find(`key ${i}`)).toBe(i);
  expect(find('key 110000')).toBe(-1);
});

test('a range that is longer than the key is not at the key, although the next key continues it', () => {
  const table = createByteTable();
  const bytes = Buffer.from('abcdef');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const [first] = [0, 3].map((from) => {
    const id = addKey(table, from, 3);
    writeKey(table, id, 0, bytes, from, from + 3);
    return id;
  });
  expect([isKeyAt(table, first!, 0, view, 0, 3), isKeyAt(table, first!, 0, view, 0, 6)]).toEqual([
    true,
    false,
  ]);
});
