import { describe, expect, test } from 'vitest';
import { hasPromtool } from './promtool.ts';
import { rows, tried } from './trial.ts';

describe.skipIf(!hasPromtool)('promtool test rules', () => {
  test.each(rows)('$title fires and stays silent as it should, and no mutant of it does', (row) => {
    const { faults, survivors } = tried(row);
    expect(faults).toBe('');
    expect(survivors).toEqual([]);
  });
});
