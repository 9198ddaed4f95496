import { expect, test } from 'vitest';
import { createTwinChoice } from '../../../src/core/twins.ts';

/** The twin of `calls` and `calls_h` that is used after each page; a page is the counts of both, as `5/9`. */
function taken(pages: string): string {
  const choice = createTwinChoice({ suffix: '_h' }, ['calls', 'calls_h', 'alone']);
  choice.sends(new Set(['calls', 'calls_h', 'alone', 'other_h']));
  expect([...choice.compared]).toEqual(['calls', 'calls_h']);
  let before = 'first';
  return pages
    .split(' ')
    .map((page) => {
      const [first = 0, second = 0] = page.split('/').map(Number);
      const changed = choice.weigh((name) => (name === 'calls' ? first : second));
      const repeated = ['calls', 'calls_h', 'alone', 'other_h'].filter(choice.isRepeated);
      const now = repeated[0] === 'calls' ? 'second' : 'first';
      expect(repeated).toEqual([now === 'second' ? 'calls' : 'calls_h']);
      expect([...changed]).toEqual(now === before ? [] : ['calls', 'calls_h']);
      before = now;
      return now;
    })
    .join(' ');
}

test.each<[what: string, pages: string, expected: string]>([
  ['nothing is counted', '0/0', 'first'],
  ['both count the same', '5/5 9/9 12/12', 'first first first'],
  ['the second has twice as many at first', '5/10', 'first'],
  ['the second has more than twice as many at first', '5/11', 'second'],
  ['the second begins to count', '0/0 0/1', 'first second'],
  ['the first has nothing any more, the second has', '5/5 0/1', 'first second'],
  ['both have nothing any more', '5/5 0/0 1/1', 'first first first'],
  ['the second alone counts on one page', '5/5 5/9 9/9', 'first first first'],
  ['the second alone counts on two pages', '5/5 5/9 5/12', 'first first second'],
  [
    'the second alone counts on two pages, not in a row',
    '5/5 5/9 6/9 6/12 7/12',
    'first first first first first',
  ],
  ['neither counts between two such pages', '5/5 5/9 5/9 5/12', 'first first first first'],
  ['the first comes back', '0/5 3/5 6/5', 'second second first'],
  ['the sides change twice', '5/5 5/9 5/12 7/12 9/12', 'first first second second first'],
])('%s', (_, pages, expected) => expect(taken(pages)).toBe(expected));

test('a pair of which one is gone is forgotten', () => {
  const choice = createTwinChoice({ suffix: '_h' }, ['calls']);
  const both = new Set(['calls', 'calls_h']);
  expect(choice.isRepeated('calls')).toBe(false);
  choice.sends(both);
  choice.weigh((name) => (name === 'calls' ? 0 : 5));
  choice.sends(both);
  expect([choice.isRepeated('calls'), choice.isRepeated('calls_h')]).toEqual([true, false]);
  choice.sends(new Set(['calls_h']));
  expect([choice.isRepeated('calls'), choice.compared.size]).toEqual([false, 0]);
  choice.sends(both);
  expect([choice.isRepeated('calls'), choice.isRepeated('calls_h')]).toEqual([false, true]);
});
