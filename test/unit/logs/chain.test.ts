import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { append, type Content, compare, noChain } from '../../../src/sources/logs/files/chain.ts';

const counted = Buffer.from(`first ${'y'.repeat(80)}\n`);
const rest = Buffer.from('unfinished ');
const of = { chain: append(noChain, counted, 0, counted.length), rest };

/** A content that cannot be read at some of the times when it is asked for a checksum. */
const contentOf = (text: string, unreadable: readonly number[] = []): Content => {
  const bytes = Buffer.from(text);
  let asked = 0;
  return {
    size: bytes.length,
    start: bytes.subarray(0, 16),
    isGzip: false,
    prefix: async (length) =>
      unreadable.includes(++asked)
        ? undefined
        : {
            sum: crc32(bytes.subarray(0, length)),
            tail: bytes.toString('latin1', Math.max(0, length - 64), length),
          },
  };
};

test.each([
  ['goes on after the unfinished line', `${counted}unfinished line\n`, 'longer'],
  ['ends with the unfinished line', `${counted}unfinished `, 'same'],
  ['ends within the unfinished line', `${counted}unfin`, 'same'],
  ['has another line after what was counted', `${counted}another line\n`, 'cut'],
  ['differs', `${'x'.repeat(counted.length)}unfinished line\n`, 'other'],
])('a content that %s', async (_, text, relation) => {
  expect(await compare(contentOf(text), of)).toBe(relation);
});

test('a content that cannot be read at one of the comparisons was not seen, whatever the others say', async () => {
  const text = `${counted}unfinished line\n`;
  expect(await compare(contentOf(text, [1]), of)).toBe('unseen');
  expect(await compare(contentOf(`${counted}another line\n`, [1]), of)).toBe('unseen');
  expect(await compare(contentOf(`${counted}another line\n`, [2]), of)).toBe('unseen');
});
