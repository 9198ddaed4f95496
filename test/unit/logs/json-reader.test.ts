import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createFields, createSlots, textOf, viewOf } from '../../../src/sources/logs/lines/fields.ts';
import { createJsonReader, readObject } from '../../../src/sources/logs/lines/json-reader.ts';
import { runs } from '../../size.ts';

const wanted = ['level', 'msg', 'ts', '__proto__', 'ü', 'a'];

function createReading() {
  const slots = createSlots();
  const keys = new Map(wanted.map((name) => [name, slots.of(name)]));
  const fields = createFields([...keys.values()]);
  const reader = createJsonReader(fields, keys);
  return (line: Buffer): Record<string, string> | undefined => {
    const bytes = Buffer.concat([line, Buffer.from('\n')]);
    const first = bytes.findIndex((byte) => ![0x20, 0x09, 0x0d].includes(byte));
    if (bytes[first] !== 0x7b) return undefined;
    const end = readObject(reader, bytes, viewOf(bytes), first);
    if (end < 0) return undefined;
    expect(end).toBe(bytes.length);
    const found: [string, string][] = [];
    for (const [name, slot] of keys) {
      const text = textOf(fields, slot);
      if (text !== undefined) found.push([name, text]);
    }
    return Object.fromEntries(found);
  };
}

/** What the contract demands, computed with `JSON.parse`. */
function expected(line: Buffer): Record<string, string> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line.toString());
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined;
  const texts = Object.entries(parsed)
    .filter(([key, value]) => wanted.includes(key) && ['string', 'number', 'boolean'].includes(typeof value))
    .map(([key, value]) => [
      key,
      typeof value === 'string' ? value.replace(/\p{Surrogate}/gu, '\ufffd') : String(value),
    ]);
  return Object.fromEntries(texts);
}

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.constantFrom('\ud800', '\udc00x', '"', '\\', '\u2028', 'info', '\u0000'),
);
const anyNumber = fc.constantFrom(
  '0',
  '-0',
  '1e400',
  '-1e400',
  '1E+2',
  '0.5',
  '12',
  '1.0',
  '9007199254740993',
);
const key = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...wanted) }, { weight: 1, arbitrary: anyText });

const gap = fc.constantFrom('', '', '', ' ', '\t', '\r', '  \t');
const escaped = (text: string) =>
  [...Array(text.length).keys()]
    .map((i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('');
/** A string in one of the spellings that JSON allows. */
const quoted = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.nat(3)).map(([value, way]) => (way > 0 ? JSON.stringify(value) : `"${escaped(value)}"`));
/** A key of one escaped character is not compared: Node 26.10 sometimes reads it as a backslash. */
const quotedKey = fc
  .tuple(key, fc.nat(3))
  .map(([value, way]) => (way > 0 || value.length === 1 ? JSON.stringify(value) : `"${escaped(value)}"`));
const { value: jsonText, object: objectText } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    quoted(anyText),
    anyNumber,
    fc.constantFrom('true', 'false', 'null'),
    tie('object'),
    fc
      .array(fc.tuple(gap, tie('value'), gap), { maxLength: 3 })
      .map((items) => `[${items.map((i) => i.join('')).join(',')}]`),
  ),
  object: fc
    .array(fc.tuple(gap, quotedKey, gap, fc.constant(':'), gap, tie('value'), gap), { maxLength: 6 })
    .map((members) => `{${members.map((member) => member.join('')).join(',')}}`),
}));
const line = fc
  .tuple(gap, fc.oneof({ weight: 9, arbitrary: objectText }, { weight: 1, arbitrary: jsonText }), gap)
  .map((parts) => Buffer.from(parts.join('')));

/** Lines in which bytes are replaced, removed or inserted, but no newline, which would make two lines. */
const mutated = fc
  .tuple(line, fc.array(fc.tuple(fc.nat(400), fc.nat(255), fc.nat(2)), { minLength: 1, maxLength: 3 }))
  .map(([bytes, changes]) => {
    const changed = [...bytes];
    for (const [place, byte, way] of changes) {
      changed.splice(place % (changed.length + 1), way === 2 ? 0 : 1, ...(way === 1 ? [] : [byte]));
    }
    return Buffer.from(changed.filter((byte) => byte !== 0x0a));
  });

describe('a line is read as JSON.parse reads it', () => {
  test('whatever the object, its white space and its escapes', () => {
    const read = createReading();
    fc.assert(
      fc.property(line, (bytes) => {
        expect(read(bytes)).toEqual(expected(bytes));
      }),
      { numRuns: runs(4000) },
    );
  });

  test('with bytes replaced, removed or put in, invalid UTF-8 included', () => {
    const read = createReading();
    fc.assert(
      fc.property(mutated, (bytes) => {
        expect(read(bytes)).toEqual(expected(bytes));
      }),
      { numRuns: runs(8000) },
    );
  });

  test('whatever bytes follow in the buffer and whatever lines came before', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(line, mutated), { minLength: 1, maxLength: 20 }), (lines) => {
        const read = createReading();
        for (const bytes of [...lines, ...lines]) expect(read(bytes)).toEqual(expected(bytes));
      }),
      { numRuns: runs(300) },
    );
  });

  test('at any depth', () => {
    const read = createReading();
    for (const depth of [1, 63, 64, 65, 66, 1000]) {
      for (const [open, close] of [
        ['[', ']'],
        ['{"a":', '}'],
      ]) {
        const nested = `${open!.repeat(depth)}1${close!.repeat(depth)}`;
        for (const text of [
          `{"level":"x","msg":${nested},"a":1e400,"ts":"\\ud800"}`,
          `{"level":"x","msg":${nested}`,
          `{"__proto__":"p","k":${nested}}`,
          `{"k":${nested}} x`,
        ]) {
          expect(read(Buffer.from(text))).toEqual(expected(Buffer.from(text)));
        }
      }
    }
  });

  test.each([
    ['{"\\u0061":"x"}', { a: 'x' }],
    ['{"\\u00fc":"","level":"l","\\u00fc":"\\u0020"}', { ü: ' ', level: 'l' }],
    ['{"\\u005c":"x","\\"":"y","a":"z"}', { a: 'z' }],
  ])('a key of one escaped character: %s', (text, fields) => {
    expect(createReading()(Buffer.from(text))).toEqual(fields);
  });

  test('through more key orders than are remembered', () => {
    const read = createReading();
    for (let i = 0; i < 5000; i++) {
      const bytes = Buffer.from(`{"k${i}":${i},"level":"l${i % 7}","k${i % 90}":"x","msg":"m"}`);
      expect(read(bytes)).toEqual(expected(bytes));
    }
  });

  const nasty = readFileSync(new URL('../../fixtures/logs/nasty.jsonl', import.meta.url));
  const nastyLines = nasty.toString('latin1').split('\n').slice(0, -1);
  test.each(nastyLines.map((text, i) => [i + 1, text]))('nasty.jsonl:%i', (_number, text) => {
    const bytes = Buffer.from(text as string, 'latin1');
    expect(createReading()(bytes)).toEqual(expected(bytes));
  });

  test.each([
    ['an overlong sequence', [0xc0, 0xaf]],
    ['a cut sequence before the quote', [0xe2, 0x82]],
    ['a surrogate in UTF-8', [0xed, 0xa0, 0x80]],
    ['a lone continuation byte', [0x80]],
    ['bytes that UTF-8 does not have', [0xff, 0xfe]],
  ])('%s in a key and in a value', (_name, wrong) => {
    const bytes = Buffer.concat([
      Buffer.from('{"k'),
      Buffer.from(wrong),
      Buffer.from('":1,"msg":"x'),
      Buffer.from(wrong),
      Buffer.from('"}'),
    ]);
    expect(createReading()(bytes)).toEqual(expected(bytes));
    expect(createReading()(bytes)).toBeDefined();
  });
});
