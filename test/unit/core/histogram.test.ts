import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultBounds, layoutOf, observeInto, sameLayout } from '../../../src/core/registry/value-stores.ts';

describe('layouts', () => {
  it('have the buckets of the specification when none are given', () => {
    expect(layoutOf('histogram', {}).bounds).toEqual([0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10]);
    expect(layoutOf('histogram', {}).texts.join()).toBe('0.001,0.005,0.01,0.05,0.1,0.5,1,5,10');
  });

  it('keep a sender’s spelling, unless its unit changes', () => {
    const shape = { bounds: [1e6, 5e9], boundTexts: ['1e+06', '5e+09'] };
    expect(layoutOf('histogram', shape).texts).toEqual(['1e+06', '5e+09']);
    expect(layoutOf('histogram', shape, 1e9)).toEqual({
      width: 5,
      hasSum: true,
      hasCount: true,
      bounds: [0.001, 5],
      texts: ['0.001', '5'],
    });
  });

  it('compare by number', () => {
    const isLike = (bounds: number[], boundTexts?: string[]) =>
      sameLayout(layoutOf('histogram', { bounds: [1, 2] }), layoutOf('histogram', { bounds, boundTexts }));
    expect([isLike([1, 2], ['1.0', '2.0']), isLike([1, 3]), isLike([1, 2, 3])]).toEqual([true, false, false]);
  });
});

describe('observing', () => {
  it('counts cumulatively, a value on a bound below it', () => {
    const live = new Float64Array(2 + 12 + 1).fill(0);
    for (const value of [0.001, 0.0011, 0.5, 10, 10.5, -1]) observeInto(live, 2, defaultBounds, value);
    //                       .001 .005 .01 .05 .1 .5 1 5 10 +Inf sum count
    const sum = 0.001 + 0.0011 + 0.5 + 10 + 10.5 - 1;
    expect([...live]).toEqual([0, 0, 2, 3, 3, 3, 3, 4, 4, 4, 5, 6, sum, 6, 0]);
  });

  it('agrees with counting each bucket from the list', () => {
    const bounds = [-1, 0, 0.25, 3];
    fc.assert(
      fc.property(fc.array(fc.double({ min: -5, max: 5, noNaN: true })), (values) => {
        const live = new Float64Array(7);
        for (const value of values) observeInto(live, 0, bounds, value);
        const below = bounds.map((bound) => values.filter((value) => value <= bound).length);
        expect([...live.subarray(0, 5)]).toEqual([...below, values.length]);
        expect(live[6]).toBe(values.length);
      }),
    );
  });
});
