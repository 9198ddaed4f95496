import { basename } from 'node:path';
import { type Aged, byRestartAndAge } from './family.ts';
import type { Trail } from './trail.ts';
import type { Trails } from './trails.ts';

/** Numbers a lineage's generations anew: by what their names say now, those without a name by their times. */
export function arrangeLineage(trails: Trails, path: string): void {
  const members = trails.lineage(path);
  const ages = byRestartAndAge(basename(members.at(0)?.home ?? path), members.map(aged));
  const sorted = members
    .filter(({ standing }) => standing !== 'unlinked')
    .sort((a, b) => Number(a.standing === 'live') - Number(b.standing === 'live') || ages(aged(a), aged(b)));
  for (const trail of members.filter(({ standing }) => standing === 'unlinked')) {
    const next = sorted.findIndex((other) => aged(other).mtimeNs > aged(trail).mtimeNs);
    sorted.splice(next < 0 ? sorted.length : next, 0, trail);
  }
  if (sorted.some((trail, i) => trail !== members[i])) trails.arrange(path, sorted);
}

function aged({ real, mtimeNs, nowMtimeNs }: Trail): Aged {
  return { name: basename(real), mtimeNs: mtimeNs > nowMtimeNs ? mtimeNs : nowMtimeNs };
}
