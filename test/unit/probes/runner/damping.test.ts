import { describe, expect, test } from 'vitest';
import { createDamping, createFlapping } from '../../../../src/probes/runner/probe-state.ts';

/** Checks as text: `+` succeeded, `-` failed. */
const checks = (text: string) => [...text].map((sign) => sign === '+');

describe('the damped state', () => {
  // Below each check is the state after it: u up, d down, . not known.
  test.each<[string, object, string, string]>([
    ['turns at once unless told', {}, '+--+-', 'uddud'],
    ['begins down', {}, '-+', 'du'],
    ['three failures', { failureThreshold: 3 }, '+--+---+', 'uuuuuudu'],
    ['not known until enough failed', { failureThreshold: 3 }, '---+', '..du'],
    ['two successes', { successThreshold: 2 }, '++-+-++', '.uddddu'],
    ['both', { failureThreshold: 2, successThreshold: 3 }, '+++-+--++-+++', '..uuuuddddddu'],
  ])('%s', (_, options, told, states) => {
    const damping = createDamping(options);
    const seen = checks(told).map((ok) => {
      const before = damping.state;
      const turned = damping.take(ok);
      expect(turned).toBe(damping.state === before ? undefined : damping.state);
      return damping.state?.[0] ?? '.';
    });
    expect(seen.join('')).toBe(states);
  });

  test('counts failures in a row', () => {
    const damping = createDamping({ failureThreshold: 5 });
    const counts = checks('--+---').map((ok) => {
      damping.take(ok);
      return damping.consecutiveFailures;
    });
    expect(counts).toEqual([1, 2, 0, 1, 2, 3]);
  });
});

describe('flapping', () => {
  const run = (text: string) => {
    const flapping = createFlapping();
    return checks(text).flatMap((ok, i) => {
      const change = flapping.take(ok);
      return change ? [[i, change]] : [];
    });
  };

  test.each<[string, string, unknown[]]>([
    ['one fall is none', `${'+'.repeat(20)}${'-'.repeat(20)}`, []],
    ['five changes are none', '+-+-+-', []],
    ['the sixth begins it, once', '+-+-+-+-+-+-', [[6, 'began']]],
    ['changes that are old do not count', `+-+-+-${'-'.repeat(20)}+-`, []],
    [
      'it sticks until two are left',
      `+-+-+-+${'+'.repeat(18)}`,
      [
        [6, 'began'],
        [24, 'ended'],
      ],
    ],
  ])('%s', (_, text, expected) => expect(run(text)).toEqual(expected));

  test('says so while it lasts', () => {
    const flapping = createFlapping();
    for (const ok of checks('+-+-+-+')) flapping.take(ok);
    expect(flapping.isFlapping).toBe(true);
    for (const ok of checks('+'.repeat(20))) flapping.take(ok);
    expect(flapping.isFlapping).toBe(false);
  });
});
