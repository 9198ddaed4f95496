import { describe, test } from 'vitest';
import { hasPromtool } from './promtool.ts';
import { areMutated, rows, tried } from './trial.ts';

describe.skipIf(!hasPromtool)('promtool test rules', () => {
  const mutants = areMutated ? ', and no mutant of it does' : '';
  test.concurrent.for(rows)(
    `$title fires and stays silent as it should${mutants}`,
    async (row, { expect }) => {
      const { faults, survivors } = await tried(row);
      expect(faults).toBe('');
      expect(survivors).toEqual([]);
    },
  );
});
