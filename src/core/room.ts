import { createFamily, type Family } from './family.ts';
import type { Kind } from './model.ts';
import type { Scope } from './series.ts';
import type { Tally } from './tally.ts';

/** How many series there may be. A series is one label set; a histogram counts once. */
export interface Limits {
  seriesPerMetric: number;
  series: number;
  /** Further forbidden tag names, in any spelling. */
  forbiddenTags: readonly string[];
  /** Tag names whose values are not looked into. */
  allowValues: readonly string[];
}

/** What is known of a name beforehand. */
export interface Known {
  kind: Kind;
  additive?: boolean;
  help: string;
}

/** Everything that the parts of a registry share. */
export interface Room {
  readonly families: Map<string, Family>;
  readonly tally: Tally;
  /** When a series starts that starts now; wall clock, ms, and never back. */
  readonly startMs: () => number;
  readonly catalogKind: (family: string) => Known | undefined;
  readonly scopeOf: (service: string, relayed: boolean) => Scope;
  limits: Pick<Limits, 'seriesPerMetric' | 'series'>;
  /** Series that count against the limit, and those that stand for what is over it. */
  counted: number;
  overflow: number;
  /** Changes with every series and family that comes or goes. */
  version: number;
}

/** The family of a name, made if need be. */
export function familyOf(room: Room, name: string): Family {
  let family = room.families.get(name);
  if (!family) {
    family = createFamily(name);
    room.families.set(name, family);
    room.version += 1;
  }
  return family;
}

/** Forgets a family that nobody claims. */
export function tidy(room: Room, family: Family): void {
  if (family.claims.size > 0 || family.series.size > 0 || family.waiting.size > 0) return;
  room.families.delete(family.name);
  room.version += 1;
}

/** Interned scopes. */
export function createScopes(): Room['scopeOf'] {
  const scopes = new Map<string, Scope>();
  return (service, relayed) => {
    const key = `${relayed} ${service}`;
    let scope = scopes.get(key);
    if (!scope) {
      scope = { service, relayed };
      scopes.set(key, scope);
    }
    return scope;
  };
}
