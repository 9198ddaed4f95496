import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createEncoder, decodeSnapshot, type SnapshotContent } from '../../../src/agent/state/snapshot.ts';
import { AgentError } from '../../../src/core/errors.ts';
import { runs } from '../../size.ts';
import { bodyOf, crcOf, type Parts, sealed, snapshotOf } from './layout.ts';

const sample: Parts = {
  table: 'names of three',
  sequence: 7,
  values: [1, 0.5, 1e300],
  sections: [
    ['logs', 'offsets'],
    ['ü', ''],
  ],
};

const contentOf = ({ table = '', values = [], sections = [] }: Parts): SnapshotContent => ({
  table: Buffer.from(table),
  values: Float64Array.from(values),
  sections: new Map(sections.map(([name, text]) => [name, Buffer.from(text)])),
});

/** Decodes bytes, and returns the reason if they are refused; any other error fails the test. */
function refusalOf(bytes: Uint8Array): string | undefined {
  try {
    decodeSnapshot(bytes);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(AgentError);
    expect((error as AgentError).code).toBe('snapshot_corrupt');
    return (error as AgentError).message;
  }
}

test('the checksum of these tests is CRC-32', () => {
  expect(crcOf(Buffer.from('123456789'))).toBe(0xcbf43926);
});

describe('encoder', () => {
  test('lays the snapshot out as documented', () => {
    const bytes = createEncoder().encode(contentOf(sample), 7);
    expect(Buffer.from(bytes).toString('hex')).toBe(snapshotOf(sample).toString('hex'));
  });

  test('reuses its buffer through any contents without a trace of earlier ones', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 60 });
    const parts = fc.record({
      table: text,
      sequence: fc.nat(),
      values: fc.array(fc.double({ noNaN: true }), { maxLength: 40 }),
      sections: fc.uniqueArray(fc.tuple(text, text), { selector: ([name]) => name, maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(parts, { minLength: 1, maxLength: 8 }), (all) => {
        const encoder = createEncoder();
        for (const one of all) {
          const bytes = encoder.encode(contentOf(one), one.sequence);
          expect(Buffer.from(bytes).equals(snapshotOf(one))).toBe(true);
        }
      }),
    );
  });

  test('takes a table that is the same array for the same table', () => {
    const encoder = createEncoder();
    const content = contentOf(sample);
    encoder.encode(content, 1);
    const next = { ...content, values: Float64Array.from([2, 3]) };
    expect(
      Buffer.from(encoder.encode(next, 2)).equals(snapshotOf({ ...sample, sequence: 2, values: [2, 3] })),
    ).toBe(true);
  });

  test.each<[string, (content: SnapshotContent) => SnapshotContent, boolean]>([
    ['nothing', (content) => content, true],
    [
      'copies of values and sections',
      (content) => ({ ...content, values: content.values.slice(), sections: new Map(content.sections) }),
      true,
    ],
    ['a value', (content) => ({ ...content, values: Float64Array.from([1, 0.5, 2]) }), false],
    ['one value less', (content) => ({ ...content, values: content.values.slice(1) }), false],
    ['the table', (content) => ({ ...content, table: Buffer.from('names of four.') }), false],
    [
      'a section',
      (content) => ({
        ...content,
        sections: new Map([...content.sections, ['logs', Buffer.from('OFFSETS')]]),
      }),
      false,
    ],
    [
      'the name of a section',
      (content) => ({
        ...content,
        sections: new Map([
          ['LOGS', Buffer.from('offsets')],
          ['ü', Buffer.alloc(0)],
        ]),
      }),
      false,
    ],
    [
      'one section less',
      (content) => ({ ...content, sections: new Map([['logs', Buffer.from('offsets')]]) }),
      false,
    ],
    [
      'bytes from a section to its name',
      (content) => ({
        ...content,
        sections: new Map([
          ['logso', Buffer.from('ffsets')],
          ['ü', Buffer.alloc(0)],
        ]),
      }),
      false,
    ],
  ])('says whether it holds the content when what changed is %s', (_, change, holds) => {
    const encoder = createEncoder();
    const content = contentOf(sample);
    expect(encoder.holds(content)).toBe(false);
    encoder.encode(content, 1);
    expect(encoder.holds(change(content))).toBe(holds);
  });

  const zeros = (bytes: number) => Buffer.alloc(bytes).toString();
  test.each<[string, held: Parts, asked: Parts]>([
    ['a value of the bytes of an empty section', { values: [0] }, { sections: [['', '']] }],
    [
      'a section whose end has the bytes of another one',
      { sections: [['a', zeros(8)]] },
      {
        sections: [
          ['a', ''],
          ['', ''],
        ],
      },
    ],
  ])('tells %s from it', (_, held, asked) => {
    const encoder = createEncoder();
    const content = contentOf(held);
    encoder.encode(content, 1);
    expect(encoder.holds({ ...contentOf(asked), table: content.table })).toBe(false);
  });
});

describe('decodeSnapshot', () => {
  test('reads the least that there is', () => {
    expect(decodeSnapshot(snapshotOf({ sequence: 0 }))).toMatchObject({ sequence: 0, sections: new Map() });
  });

  test('reads what was laid out by hand', () => {
    const { sequence, table, values, sections } = decodeSnapshot(snapshotOf(sample));
    expect(sequence).toBe(7);
    expect(Buffer.from(table).toString()).toBe('names of three');
    expect([...values]).toEqual([1, 0.5, 1e300]);
    expect([...sections].map(([name, bytes]) => [name, Buffer.from(bytes).toString()])).toEqual(
      sample.sections,
    );
  });

  test.each([
    ['empty', Buffer.alloc(0), /foreign/],
    ['of another program', Buffer.from('{"offsets":{}}'.repeat(9)), /foreign/],
    ['of a machine with the other byte order', snapshotOf({ magic: 'svcstatB' }), /foreign/],
    ['of a later version', snapshotOf({ version: 2 }), /unknown version, got 2; this agent reads version 1/],
    ['only a name', snapshotOf(sample).subarray(0, 8), /too short/],
    ['only a head', snapshotOf(sample).subarray(0, 20), /too short/],
    ['a byte shorter than any', snapshotOf({}).subarray(0, -1), /too short/],
    ['with a negative sequence', snapshotOf({ sequence: -1 }), /sequence/],
    ['with a sequence that is no number', snapshotOf({ sequence: Number.NaN }), /sequence/],
    [
      'with a section twice',
      snapshotOf({
        sections: [
          ['a', '1'],
          ['a', '2'],
        ],
      }),
      /section "a" is a duplicate/,
    ],
    [
      'with bytes after its parts',
      sealed(Buffer.concat([bodyOf(sample), Buffer.from('!')])),
      /longer than its parts/,
    ],
  ])('refuses a file that is %s', (_, bytes, message) => {
    expect(refusalOf(bytes)).toMatch(message);
  });

  test('refuses a snapshot cut off at any byte', () => {
    const whole = snapshotOf(sample);
    for (let length = 0; length < whole.length; length++) {
      expect(refusalOf(whole.subarray(0, length)), `cut at ${length}`).toBeDefined();
    }
  });

  test('refuses a snapshot with any bit turned', () => {
    const whole = snapshotOf(sample);
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const turned = Buffer.from(whole);
      turned[bit >> 3]! ^= 1 << (bit & 7);
      expect(refusalOf(turned), `bit ${bit}`).toBeDefined();
    }
  });

  test('refuses any bytes cleanly, behind a head that is right too', () => {
    const head = fc.constantFrom(Buffer.alloc(0), Buffer.from('svcstatL'), bodyOf({}).subarray(0, 12));
    fc.assert(
      fc.property(head, fc.uint8Array({ maxLength: 400 }), (right, bytes) => {
        expect(refusalOf(Buffer.concat([right, bytes]))).toBeDefined();
      }),
      { numRuns: runs(2000) },
    );
  });

  test('reads or refuses cleanly, and holds no more than it was given, when lengths lie under a checksum that holds', () => {
    const body = bodyOf(sample);
    const lie = fc.tuple(
      fc.integer({ min: 8, max: body.length - 4 }),
      fc.oneof(fc.nat(0xffffffff), fc.nat(80)),
    );
    fc.assert(
      fc.property(fc.array(lie, { minLength: 1, maxLength: 3 }), (lies) => {
        const bytes = Buffer.from(body);
        for (const [at, value] of lies) bytes.writeUInt32LE(value, at);
        const whole = sealed(bytes);
        if (refusalOf(whole) !== undefined) return;
        const { table, values, sections } = decodeSnapshot(whole);
        const held = [table, values, ...sections.values()].reduce((sum, part) => sum + part.byteLength, 0);
        expect(held).toBeLessThan(whole.length);
      }),
      { numRuns: runs(3000) },
    );
  });
});
