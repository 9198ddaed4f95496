import type { Family } from './family.ts';
import type { RefusalReason } from './reasons.ts';
import type { Room } from './room.ts';
import { Series, type Want } from './series.ts';
import type { Entry } from './store.ts';

/** Series over the limits in all; names and services that come from elsewhere must not grow even these. */
const maxOverflow = 1000;

/** Which limit a new series would break. */
export function overLimit(room: Room, family: Family, want: Want): RefusalReason | undefined {
  if (want.exempt) return undefined;
  if (family.counted >= room.limits.seriesPerMetric) return 'limit_metric';
  return room.counted >= room.limits.series ? 'limit_total' : undefined;
}

const sameTexts = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((text, i) => text === b[i]);

/** Whether a series from the state is the one that is wanted. */
export function isSameShape(parked: Entry, want: Pick<Want, 'kind' | 'layout'>): boolean {
  return parked.kind === want.kind && sameTexts(parked.texts, want.layout.texts);
}

/** A series over the cells of the state if that has the wanted one, else over new ones. */
function place(room: Room, want: Want, overflow: boolean): Series {
  const { store } = want.source;
  const parked = store.ledger?.find(want.family, want.identity);
  if (parked && isSameShape(parked, want)) {
    store.ledger?.adopt(parked);
    return new Series(want, parked.at, parked.born, parked.startMs, overflow);
  }
  if (parked) store.ledger?.giveUp(parked);
  const at = store.cells.take(want.layout.width);
  const series = new Series(want, at, store.birth(), room.startMs(), overflow);
  store.ledger?.enter(series);
  return series;
}

function count(room: Room, family: Family, series: Series, by: 1 | -1): void {
  room.version += 1;
  family.picture = undefined;
  if (series.overflow) room.overflow += by;
  else if (!series.want.exempt) {
    room.counted += by;
    family.counted += by;
    const { service } = series;
    const left = (family.services.get(service) ?? 0) + by;
    if (left > 0) family.services.set(service, left);
    else family.services.delete(service);
  }
}

export function openSeries(room: Room, family: Family, want: Want, overflow = false): Series {
  const series = place(room, want, overflow);
  family.series.set(want.identity, series);
  count(room, family, series, 1);
  return series;
}

/** Takes a series out of its family; `keep` leaves it in the state for who asks for it next. */
export function closeSeries(room: Room, family: Family, series: Series, keep: boolean): void {
  const { store, at, want } = series;
  family.series.delete(want.identity);
  count(room, family, series, -1);
  if (!store.ledger) store.cells.give(at, want.layout.width);
  else if (keep) store.ledger.park(series);
  else store.ledger.strike(at, want.layout.width);
}

/**
 * The series that stands for those of a service over the limit, or undefined when there are too many of its
 * kind. Values of `svc_service` that only the sender made up count for
 * the sender's own service.
 */
export function overflowSeries(room: Room, family: Family, want: Want): Series | undefined {
  const { source } = want;
  const sent = want.scope.service;
  const service = sent === '' || family.services.has(sent) ? sent : source.service;
  const place = source.overflow(service);
  const known = family.series.get(place.identity);
  if (known) return known;
  if (room.overflow >= maxOverflow) return undefined;
  return openSeries(room, family, { ...want, ...place, rawKey: '' }, true);
}
