/**
 * Compares the verdict with the injected faults: pairs of faults that overlap in any way, in the simulated fleet. Prints for each
 * type of incident how many faults were not named, had a wrong cause, or have an incident that begins or ends at another time.
 *
 *   npm run bench -- verdict-faults [SEEDS] [FROM] [RESTARTS]
 *
 * Default: 100 seeds from 1, with three pairs each. RESTARTS is how often the agent restarts, in per cent of its looks; default
 * 0.
 */
import { type Mark, marks, played } from '../test/fleet/faults.ts';
import { numberAt, textAt } from './arguments.ts';

const seeds = numberAt(0, 'SEEDS', 100);
const from = numberAt(1, 'FROM', 1);
const restartsPercent = Number(textAt(2) ?? 0);

const table = new Map<string, Partial<Record<Mark, number>>>();
let foreignIncidents = 0;
for (let seed = from; seed < from + seeds; seed++) {
  const { marked, foreign } = played(seed, restartsPercent);
  foreignIncidents += foreign;
  for (const { type, marks: found } of marked)
    for (const name of [type.name, 'all']) {
      const row = table.get(name) ?? {};
      for (const mark of found) row[mark] = (row[mark] ?? 0) + 1;
      table.set(name, row);
    }
}

const line = (name: string, cells: readonly (string | number)[]) =>
  console.log(name.slice(0, 48).padEnd(50) + cells.map((cell) => String(cell).padStart(11)).join(''));
line('type of incident', marks);
for (const [name, row] of [...table].sort(
  ([a], [b]) => Number(a === 'all') - Number(b === 'all') || (a < b ? -1 : 1),
))
  line(
    name,
    marks.map((mark) => row[mark] ?? ''),
  );
console.log(`incidents without a fault: ${foreignIncidents}`);
