import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../size.ts';
import { lineBed, type Recorded } from '../../statsd.ts';

/** A second reader of valid DogStatsD and statsd lines, which splits strings. */
function referenceOf(datagram: string): Record<string, Recorded> {
  const shown: Record<string, Recorded> = {};
  for (const line of datagram.split('\n')) {
    const [front = '', letter = '', ...sections] = line.split('|');
    const [name, ...values] = front.split(':');
    const rate = sections.find((section) => section[0] === '@')?.slice(1) ?? '1';
    const tagText = sections.find((section) => section[0] === '#')?.slice(1) ?? '';
    const tags = tagText === '' ? [] : tagText.split(',').map((tag) => tag.split(/:(.*)/s).slice(0, 2));
    const sorted = Object.fromEntries(tags.sort(([a], [b]) => (a! < b! ? -1 : 1)));
    const kind = { c: 'counter', g: 'gauge' }[letter] ?? 'histogram';
    const key = `${kind} ${name}${tags.length === 0 ? '' : JSON.stringify(sorted)}`;
    for (const text of values) {
      const before = shown[key];
      const value = Number(text);
      const weight = 1 / Number(rate);
      if (letter === 'c') shown[key] = ((before as number | undefined) ?? 0) + value * weight;
      else if (letter === 'g') shown[key] = /^[+-]/.test(text) ? ((before as number) ?? 0) + value : value;
      else {
        const observed: [number, number] = [letter === 'ms' ? value / 1000 : value, weight];
        shown[key] = [...((before as [number, number][] | undefined) ?? []), observed];
      }
    }
  }
  return shown;
}

const word = fc.stringMatching(/^[a-z][a-z0-9_.-]{0,9}$/);
const spelling = fc.oneof(
  fc.integer({ min: 0, max: 1e9 }).map(String),
  fc.double({ min: 0, max: 1e12, noNaN: true }).map(String),
  fc.integer({ min: 0, max: 99 }).map((n) => `${n}e2`),
  fc.integer({ min: 0, max: 999 }).map((n) => `00${n}.50`),
);
const signed = fc.tuple(fc.constantFrom('', '+', '-'), spelling).map(([sign, digits]) => sign + digits);
const tags = fc.uniqueArray(word, { maxLength: 4 }).chain((names) =>
  fc
    .array(fc.stringMatching(/^[a-zA-Z0-9:/._=-]{1,8}$/), {
      minLength: names.length,
      maxLength: names.length,
    })
    .map((values) => names.map((name, i) => `${name}:${values[i]}`).join(',')),
);
const line = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c.d', 'größe'),
    letter: fc.constantFrom('c', 'g', 'ms', 'h', 'd'),
    rate: fc.constantFrom('', '|@0.1', '|@0.25', '|@1'),
    tags,
    aside: fc.constantFrom('', '|c:0a1b', '|T1656581400'),
  })
  .chain((parts) => {
    const value = parts.letter === 'g' || parts.letter === 'h' ? signed : spelling;
    return fc.array(value, { minLength: 1, maxLength: 4 }).map((values) => {
      const tagged = parts.tags === '' ? '' : `|#${parts.tags}`;
      return `${parts.name}:${values.join(':')}|${parts.letter}${parts.rate}${tagged}${parts.aside}`;
    });
  });

describe('against a second reader', () => {
  test('any datagram of right lines, read twice', () => {
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), (lines) => {
        const bed = lineBed({ tagFormat: 'dogstatsd' });
        const datagram = lines.join('\n');
        bed.read(datagram);
        bed.read(`${datagram}\n`);
        expect(bed.refused).toEqual({});
        expect(bed.shown()).toEqual(referenceOf(`${datagram}\n${datagram}`));
      }),
      { numRuns: runs(500) },
    );
  });

  test('whatever the bytes, every line counts once and nothing is shown that is no number', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ':',
        '|',
        '|c',
        '|@',
        '|#',
        '\n',
        '\r\n',
        ',',
        '=',
        '+',
        '-',
        '1',
        'NaN',
        'a',
        '\0',
        '\xff',
      ),
      line,
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
        const bed = lineBed();
        const text = pieces.join('');
        bed.read(Buffer.from(text, 'latin1'));
        bed.read(Buffer.from(text, 'latin1'));
        const numbers = Object.values(bed.shown()).flat(2);
        expect(numbers.every(Number.isFinite)).toBe(true);
      }),
      { numRuns: runs(1000) },
    );
  });

  test('suffixes come back as they were written, whatever dots their values have', () => {
    const keys = ['domain', 'operation', 'shard_id', 'tasklist'];
    const value = fc.stringMatching(/^[A-Z0-9:-]{1,5}(\.[A-Z0-9]{1,4}){0,3}$/);
    fc.assert(
      fc.property(
        fc.subarray(keys, { minLength: 1 }),
        fc.array(value, { minLength: 4, maxLength: 4 }),
        (used, values) => {
          const pairs = used.map((key, i): [string, string] => [key, values[i]!]);
          const bed = lineBed();
          bed.read(`requests${pairs.map(([key, text]) => `.${key}.${text}`).join('')}:2|c`);
          expect(bed.shown()).toEqual({
            [`counter requests${JSON.stringify(Object.fromEntries(pairs))}`]: 2,
          });
        },
      ),
    );
  });
});
