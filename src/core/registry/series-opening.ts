import { hashLabels } from '../hashes.ts';
import { seriesBytes } from './heap-share.ts';
import { type Family, type RegistryState, Series, type SeriesSpec, takeHeap } from './registry-state.ts';
import type { SeriesRecord } from './value-stores.ts';

// Opens and closes series and maintains the numbers that limits are compared with. `admission.ts` decides whether a series opens.

const sameTexts = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((text, i) => text === b[i]);

/**
 * Whether a series from the state has the requested shape. A series that lacks one of the rule's tags may come from an entry
 * without that field, or from the rule before it had the tag. Only the names of all tags tell which.
 */
export function isSameShape(
  retained: SeriesRecord,
  spec: Pick<SeriesSpec, 'kind' | 'layout' | 'tagNames'>,
): boolean {
  const isOtherRule = (retained.tagNames ?? spec.tagNames) !== (spec.tagNames ?? retained.tagNames);
  return !isOtherRule && retained.kind === spec.kind && sameTexts(retained.texts, spec.layout.texts);
}

/** A series over its cells in the state, or over new cells. */
function createSeries(state: RegistryState, spec: SeriesSpec, isOverflow: boolean): Series {
  const { store } = spec.source;
  const retained = store.index?.find(spec.family, spec.identity);
  if (retained && isSameShape(retained, spec)) {
    store.index?.reclaim(retained);
    return new Series(spec, retained.at, retained.openedStep, retained.startMs, isOverflow);
  }
  if (retained) store.index?.discard(retained);
  const at = store.cells.take(spec.layout.width);
  const series = new Series(spec, at, store.noteOpening(), state.startMs(), isOverflow);
  store.index?.add(series);
  return series;
}

/** The number of counted series of each service, which is maintained from then on. */
export function servicesOf(family: Family): ReadonlyMap<string, number> {
  if (family.services) return family.services;
  family.services = new Map();
  for (const series of family.series.values())
    if (!series.overflow && series.spec.isLimited) countService(family.services, series, 1);
  return family.services;
}

function countService(services: Map<string, number>, { service }: Series, by: 1 | -1): void {
  const left = (services.get(service) ?? 0) + by;
  if (left > 0) services.set(service, left);
  else services.delete(service);
}

function countHash(hashes: Map<number, number>, { labels }: Series, by: 1 | -1): void {
  const hash = hashLabels(labels);
  const left = (hashes.get(hash) ?? 0) + by;
  if (left > 0) hashes.set(hash, left);
  else hashes.delete(hash);
}

/** The hashes of the labels of all series, which are maintained from then on. */
export function hashesOf(family: Family): ReadonlyMap<number, number> {
  if (family.hashes) return family.hashes;
  family.hashes = new Map();
  for (const series of family.series.values()) countHash(family.hashes, series, 1);
  return family.hashes;
}

function count(state: RegistryState, family: Family, series: Series, by: 1 | -1): void {
  state.version += 1;
  family.visible = undefined;
  if (family.hashes) countHash(family.hashes, series, by);
  if (series.overflow) state.overflow += by;
  else if (series.spec.isLimited) {
    const { use } = series.spec.source;
    takeHeap(state, use, by * seriesBytes(series.spec));
    use.series += by;
    state.counted += by;
    family.counted += by;
    if (family.services) countService(family.services, series, by);
  }
}

export function openSeries(
  state: RegistryState,
  family: Family,
  spec: SeriesSpec,
  isOverflow = false,
): Series {
  const series = createSeries(state, spec, isOverflow);
  family.series.set(spec.identity, series);
  count(state, family, series, 1);
  return series;
}

/** Removes a series from its family. With `keep` the state retains it for the next source that asks for it. */
export function closeSeries(state: RegistryState, family: Family, series: Series, keep: boolean): void {
  const { store, at, spec } = series;
  family.series.delete(spec.identity);
  count(state, family, series, -1);
  if (!store.index) store.cells.give(at, spec.layout.width);
  else if (keep) store.index.retain(series);
  else store.index.remove(at, spec.layout.width);
}
