import { describe, expect, test } from 'vitest';
import { hasPromtool } from './promtool.ts';
import { areMutated, rows, tried } from './trial.ts';

describe.skipIf(!hasPromtool)('promtool test rules', () => {
  const mutants = areMutated ? ', and no mutant of it does' : '';
  test.each(rows)(`$title fires and stays silent as it should${mutants}`, (row) => {
    const { faults, survivors } = tried(row);
    expect(faults).toBe('');
    expect(survivors).toEqual([]);
  });
});
