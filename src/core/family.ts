import { type Kind, kinds, type SeriesView } from './model.ts';
import { compareText } from './names.ts';
import type { Owner, Scope, Series, Want } from './series.ts';
import type { Store } from './store.ts';

/** A raw name of a kind that wants to be this family, and how many owners say so. */
export interface Claim {
  readonly kind: Kind;
  readonly rawName: string;
  readonly help: string;
  count: number;
}

/** All series of one exported name. One kind holds the name; claimants of other kinds wait. */
export interface Family {
  readonly name: string;
  readonly claims: Map<string, Claim>;
  /** By identity. */
  readonly series: Map<string, Series>;
  /** Owners of a kind that lost, or all of them while the name is a suffix of a histogram's. */
  readonly waiting: Set<Owner>;
  kind: Kind | undefined;
  /** The name is `_bucket`, `_sum` or `_count` of a histogram or summary. */
  taken: boolean;
  /** Series that count against the limit. */
  counted: number;
  /** How many of those each service has. */
  readonly services: Map<string, number>;
  picture: Picture | undefined;
}

/** The series in sight, in order of their opening, and how long that is true. */
interface Picture {
  readonly all: readonly Series[];
  readonly byScope: ReadonlyMap<Scope, readonly Series[]>;
  readonly sights: ReadonlyMap<Store, number>;
}

export function createFamily(name: string): Family {
  return {
    name,
    claims: new Map(),
    series: new Map(),
    waiting: new Set(),
    kind: undefined,
    taken: false,
    counted: 0,
    services: new Map(),
    picture: undefined,
  };
}

type Claimed = Pick<Want, 'kind' | 'rawName' | 'help'>;

export function claim(family: Family, { kind, rawName, help }: Claimed): void {
  const key = `${kind} ${rawName}`;
  const known = family.claims.get(key);
  if (known) known.count += 1;
  else family.claims.set(key, { kind, rawName, help, count: 1 });
}

export function unclaim(family: Family, { kind, rawName }: Omit<Claimed, 'help'>): void {
  const key = `${kind} ${rawName}`;
  const known = family.claims.get(key);
  if (!known) return;
  known.count -= 1;
  if (known.count === 0) family.claims.delete(key);
}

/**
 * Whose the name is: the catalog's kind, else that of the smallest raw name, else the first in the order of
 * `kinds` (contract, Names and labels). It depends on who claims, never on who came first.
 */
export function winningClaim(claims: Iterable<Claim>, catalogKind: Kind | undefined): Claim | undefined {
  const order = (a: Claim, b: Claim) =>
    Number(b.kind === catalogKind) - Number(a.kind === catalogKind) ||
    compareText(a.rawName, b.rawName) ||
    kinds.indexOf(a.kind) - kinds.indexOf(b.kind);
  let best: Claim | undefined;
  for (const claim of claims) if (!best || order(claim, best) < 0) best = claim;
  return best;
}

function paint(family: Family): Picture {
  const all: Series[] = [];
  const byScope = new Map<Scope, Series[]>();
  const sights = new Map<Store, number>();
  for (const series of family.series.values()) {
    const { store } = series;
    if (!sights.has(store)) sights.set(store, store.sight);
    if (series.born >= store.shownStep) continue;
    all.push(series);
    const { scope } = series.want;
    const group = byScope.get(scope);
    if (group) group.push(series);
    else byScope.set(scope, [series]);
  }
  return { all, byScope, sights };
}

function isCurrent({ sights }: Picture): boolean {
  for (const [store, sight] of sights) if (store.sight !== sight) return false;
  return true;
}

/** The family's series in sight whose scope is taken. Known families cost nothing per series. */
export function seriesInSight(family: Family, takes: (scope: Scope) => boolean): readonly SeriesView[] {
  if (!family.picture || !isCurrent(family.picture)) family.picture = paint(family);
  const { all, byScope } = family.picture;
  const groups = [...byScope].filter(([scope]) => takes(scope)).map(([, group]) => group);
  if (groups.length === byScope.size) return all;
  return groups.length === 1 ? groups[0]! : groups.flat();
}
