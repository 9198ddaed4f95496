import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareText, sanitizeName } from '../../../src/core/registry/labels.ts';

describe('sanitizeName', () => {
  it.each([
    ['svc_workflow_started', 'svc_workflow_started'],
    ['svc.workflow-started', 'svc_workflow_started'],
    ['a--b', 'a__b'],
    ['a.-b', 'a__b'],
    ['a__b', 'a__b'],
    ['_', '_'],
    ['9lives', '_9lives'],
    ['9', '_9'],
    ['.9', '_9'],
    ['-', '_'],
    ['a:b', 'a_b'],
    ['a b\tc\nd', 'a_b_c_d'],
    ['é', '_'],
    ['naïve', 'na_ve'],
    ['日本', '__'],
    ['😀', '_'],
    ['x😀y', 'x_y'],
    ['\ud83d', '_'],
    ['a\u0000b', 'a_b'],
    ['ÀB', '_B'],
    ['', ''],
  ])('%j becomes %j', (raw, name) => expect(sanitizeName(raw)).toBe(name));

  it('is one code point for one, but for the one in front of a digit', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', minLength: 1 }), (raw) => {
        const name = sanitizeName(raw);
        expect(name).toMatch(/^[A-Za-z_][A-Za-z0-9_]*$/);
        expect(name.length).toBe([...raw].length + (/^[0-9]/.test(raw) ? 1 : 0));
        expect(sanitizeName(name)).toBe(name);
      }),
    );
  });
});

describe('compareText', () => {
  it('orders by code units, whatever the locale', () => {
    expect(['b', 'Z', 'a', 'ä', '_', '10', '9'].sort(compareText)).toEqual([
      '10',
      '9',
      'Z',
      '_',
      'a',
      'b',
      'ä',
    ]);
  });
});
