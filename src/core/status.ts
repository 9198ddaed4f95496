import type { Family } from './family.ts';
import type { Kind } from './model.ts';
import { compareText } from './names.ts';
import type { Room } from './room.ts';
import { type FamilySize, familySizes } from './self-series.ts';
import type { Refusal, RefusalCount } from './tally.ts';

/** A name that several raw names or kinds want, or that belongs to a histogram. */
export interface Conflict {
  readonly family: string;
  /** The kind that holds the name; `undefined` while it is taken as a suffix. */
  readonly kind: Kind | undefined;
  readonly claims: readonly { readonly rawName: string; readonly kind: Kind }[];
}

/** What the status page and `/api/status` say about series. */
export interface RegistryStatus {
  /** Series that count against `limits.series`. */
  readonly series: number;
  /** Series that stand for those over a limit, on top. */
  readonly overflow: number;
  readonly families: readonly FamilySize[];
  readonly refusals: readonly RefusalCount[];
  /** The newest refusals, newest last. */
  readonly latest: readonly Refusal[];
  readonly conflicts: readonly Conflict[];
}

const maxConflicts = 100;

function isContested({ claims, taken }: Family): boolean {
  return taken || new Set([...claims.values()].map((claim) => claim.kind)).size > 1;
}

function conflictOf({ name, kind, taken, claims }: Family): Conflict {
  const wanting = [...claims.values()].map(({ rawName, kind }) => ({ rawName, kind }));
  wanting.sort((a, b) => compareText(a.rawName, b.rawName) || compareText(a.kind, b.kind));
  return { family: name, kind: taken ? undefined : kind, claims: wanting };
}

export function statusOf(room: Room): RegistryStatus {
  const contested = [...room.families.values()].filter(isContested);
  return {
    series: room.counted,
    overflow: room.overflow,
    families: familySizes(room),
    refusals: [...room.tally.counts()],
    latest: [...room.tally.latest()],
    conflicts: contested
      .map(conflictOf)
      .sort((a, b) => compareText(a.family, b.family))
      .slice(0, maxConflicts),
  };
}
