import { expect, test } from 'vitest';
import { createVocabulary } from '../../../src/core/vocabulary.ts';
import { createVocabularyDetector, withPrefix } from '../../../src/core/vocabulary-detector.ts';

const product = createVocabulary({
  name: 'product',
  metrics: { calls: 'svc_calls', starts: { to: 'svc_starts', where: { kind: ['cold'] } } },
  tags: {},
  twins: { suffix: '_h' },
});

test('without a prefix a detector is the same', () => {
  const detector = createVocabularyDetector([product]);
  expect(withPrefix(detector, '')).toBe(detector);
});

test('until the vocabulary is known, a name loses its prefix and others stay', () => {
  const detector = withPrefix(createVocabularyDetector([product]), 'mine');
  expect(detector.vocabulary).toBeUndefined();
  expect(detector.translate('counter', 'mine_other', { a: '1' })).toEqual({
    name: 'other',
    tags: { a: '1' },
  });
  for (const name of ['other', 'mineother', 'mine'])
    expect(detector.translate('counter', name, {})).toBeUndefined();
});

test('names with the prefix are those of the vocabulary', () => {
  const detector = withPrefix(createVocabularyDetector([product]), 'mine');
  const sent = new Set(['mine_calls', 'mine_calls_h', 'mine_x', 'up']);
  expect([...detector.detect(sent)]).toEqual([...sent]);
  expect(detector.vocabulary).toBe(product);
  expect([...detector.detect(sent)]).toEqual([]);
  expect([...detector.detect(new Set([...sent, 'mine_starts', 'new']))]).toEqual(
    expect.arrayContaining(['mine_calls', 'mine_starts']),
  );
  expect([...detector.detect(new Set([...sent, 'mine_starts']))]).not.toContain('mine_x');
  expect(detector.translate('counter', 'mine_calls', {})).toMatchObject({ name: 'svc_calls' });
  expect([detector.isKnown('mine_calls'), detector.isKnown('mine_x')]).toEqual([true, false]);
  expect(detector.readsValues('counter', 'mine_starts')).toBe(true);
  expect(detector.readsValues('counter', 'mine_calls')).toBe(false);
});

test('twins are compared and changed under the names that are sent', () => {
  const detector = withPrefix(createVocabularyDetector([product]), 'mine');
  detector.detect(new Set(['mine_calls', 'mine_calls_h']));
  const twins = ['mine_calls', 'mine_calls_h'];
  expect([...detector.compared]).toEqual(twins);
  expect(detector.translate('histogram', 'mine_calls_h', {})).toBe('left_out');
  // Only the second counts.
  const changed = detector.weigh((name) => ({ mine_calls: 0, mine_calls_h: 7 })[name]!);
  expect([...changed]).toEqual(twins);
  expect(detector.translate('histogram', 'mine_calls', {})).toBe('left_out');
});

test('a metric whose name ends like a twin has no twin, one that begins like a twin has one', () => {
  const { names } = createVocabulary({
    ...product.table,
    metrics: { _hits: 'svc_hits', took_h: 'svc_took' },
  });
  expect([...names].sort()).toEqual(['_hits', '_hits_h', 'took_h']);
});

test('no name is known before a vocabulary is detected', () => {
  const other = createVocabulary({ name: 'other', metrics: { x: 'svc_x' }, tags: {} });
  const detector = createVocabularyDetector([createVocabulary({ ...other.table, name: 'one' }), other]);
  expect([detector.isKnown('x'), detector.readsValues('counter', 'x')]).toEqual([false, false]);
});
