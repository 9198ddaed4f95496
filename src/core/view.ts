import { type Family, seriesInSight, winningClaim } from './family.ts';
import type { FamilyView, SeriesView, View } from './model.ts';
import { compareText } from './names.ts';
import type { GatherRequest } from './ports.ts';
import type { Room } from './room.ts';
import type { Scope, Series } from './series.ts';
import type { Held, Store } from './store.ts';

/** What a view reads: the families of a room over the stores that their numbers may be in. */
export interface ViewDeps {
  room: Room;
  stores(): Iterable<Store>;
}

function helpOf(room: Room, family: Family): string {
  const known = room.catalogKind(family.name);
  return known?.help || winningClaim(family.claims.values(), known?.kind)?.help || '';
}

/** The predicate, asked once per scope. */
function remembered(takes: GatherRequest['takes']): (scope: Scope) => boolean {
  const answers = new Map<Scope, boolean>();
  return (scope) => {
    let answer = answers.get(scope);
    if (answer === undefined) {
      answer = takes(scope);
      answers.set(scope, answer);
    }
    return answer;
  };
}

function familyViews(room: Room, names: readonly string[], takes: (scope: Scope) => boolean): FamilyView[] {
  const views: FamilyView[] = [];
  for (const name of names) {
    const family = room.families.get(name);
    if (!family?.kind) continue;
    const series = seriesInSight(family, takes);
    if (series.length > 0) views.push({ name, kind: family.kind, help: helpOf(room, family), series });
  }
  return views;
}

/** Takes still pictures: families by name, series in the order of their opening. */
export function createViews({ room, stores }: ViewDeps): (takes: GatherRequest['takes']) => View {
  let names: readonly string[] = [];
  let namedAt = -1;

  const sortedNames = () => {
    if (namedAt !== room.version) names = [...room.families.keys()].sort(compareText);
    namedAt = room.version;
    return names;
  };

  return (takes) => {
    const held = new Map<Store, Held>();
    for (const store of stores()) held.set(store, store.hold());
    const families = familyViews(room, sortedNames(), remembered(takes));
    let latestStore: Store | undefined;
    let latest: Float64Array = new Float64Array(0);
    return {
      families,
      numbers(series: SeriesView): Float64Array {
        const { store } = series as Series;
        if (store !== latestStore) {
          latest = held.get(store)?.values ?? new Float64Array(0);
          latestStore = store;
        }
        return latest;
      },
      release() {
        for (const each of held.values()) each.release();
        held.clear();
        latestStore = undefined;
      },
    };
  };
}
