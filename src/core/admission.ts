import { detach, enrol, type Handle, ownersOf, withdraw } from './handles.ts';
import { sameBounds } from './histogram.ts';
import { compareText } from './labels.ts';
import type { RefusalReason } from './reasons.ts';
import {
  claim,
  type Family,
  familyOf,
  type Owner,
  type RegistryState,
  Series,
  type SeriesSpec,
  type Source,
  tidy,
  unclaim,
  winningClaim,
} from './registry-state.ts';
import type { SeriesRecord } from './stores.ts';

/**
 * Who gets which place. Everything here depends on who is there, not on who came first; only limits are
 * first come. Who loses keeps its handle and waits: it is admitted when what stands in its way goes.
 */
export interface Admission {
  join(handle: Handle): void;
  /** `keep`: a durable series whose last owner leaves stays in the state. */
  leave(handle: Handle, keep: boolean): void;
  /** Judges anew after a claim was made or given back without a handle. */
  judge(family: Family): void;
}

/** Waiting in one place; a series that very many spec at once is refused to the rest for good. */
const maxWaiting = 100;
const suffixes = ['_bucket', '_sum', '_count'];

/** Which of two sources keeps a series that both send. */
export function compareSources(a: Source, b: Source): number {
  return (
    a.rank - b.rank ||
    compareText(a.service, b.service) ||
    compareText(a.component, b.component) ||
    Number(a.relayed) - Number(b.relayed) ||
    a.store.id - b.store.id
  );
}

const byOrder = (a: Handle, b: Handle) =>
  compareSources(a.spec.source, b.spec.source) || compareText(a.spec.rawKey, b.spec.rawKey);

/** The order of a handle against a series: negative if the handle comes first. */
function against({ spec: { source }, leader }: Series, { spec }: Handle): number {
  return compareSources(spec.source, source) || compareText(spec.rawKey, leader ?? spec.rawKey);
}

/** Why a handle cannot share a series, or undefined if it can. */
function obstacle(series: Series, spec: SeriesSpec, additive: boolean): RefusalReason | undefined {
  if (compareSources(spec.source, series.spec.source) !== 0) return 'duplicate_source';
  const sameLayout = sameBounds(spec.layout, series.spec.layout);
  if (spec.kind === 'histogram') return sameLayout ? undefined : 'unequal_buckets';
  const alone = !series.first || series.first.spec.rawKey === spec.rawKey;
  if (alone && sameLayout) return undefined;
  return spec.kind === 'counter' || additive ? undefined : 'not_additive';
}

function refuse(state: RegistryState, handle: Handle, reason: RefusalReason): void {
  const { family, rawName, labels, scope } = handle.spec;
  const known = handle.refusal === reason;
  handle.refusal = reason;
  if (!known) state.refusals.record({ family, rawName, labels, reason, service: scope.service });
}

function wait(state: RegistryState, waiting: Set<Owner>, handle: Handle, reason: RefusalReason): void {
  refuse(state, handle, reason);
  handle.waitsIn = waiting.add(handle);
}

/** Who is turned away for good has no claim and is not kept. */
function turnAway(state: RegistryState, family: Family, handle: Handle, reason: RefusalReason): void {
  refuse(state, handle, reason);
  unclaim(family, handle.spec);
}

/** Ends a series; who owned it or waited for it comes back without a place. */
function clear(state: RegistryState, family: Family, series: Series, keep = false): Handle[] {
  const handles = [...ownersOf(series), ...((series.waiting ?? []) as Iterable<Handle>)];
  closeSeries(state, family, series, keep);
  for (const handle of handles) detach(handle);
  return handles;
}

function admitAll(state: RegistryState, family: Family, handles: Handle[]): void {
  for (const handle of handles.sort(byOrder)) admit(state, family, handle);
}

function contend(state: RegistryState, family: Family, series: Series, handle: Handle): void {
  const reason = obstacle(series, handle.spec, state.catalogKind(family.name)?.additive ?? false);
  const unowned = !series.first && reason !== 'duplicate_source';
  if (!reason) enrol(series, handle);
  else if (unowned || against(series, handle) < 0) {
    admitAll(state, family, [...clear(state, family, series), handle]);
  } else {
    series.waiting ??= new Set();
    if (series.waiting.size < maxWaiting) wait(state, series.waiting, handle, reason);
    else turnAway(state, family, handle, reason);
  }
}

/** Over the limit: into the sum of all those, or away. */
function spill(state: RegistryState, family: Family, handle: Handle, limit: RefusalReason): void {
  const { spec } = handle;
  const spills = spec.kind === 'counter' || spec.kind === 'histogram';
  const series = spills ? overflowSeries(state, family, spec) : undefined;
  const reason = series && obstacle(series, spec, false);
  if (!series || reason) turnAway(state, family, handle, reason ?? limit);
  else {
    refuse(state, handle, limit);
    enrol(series, handle);
  }
}

function admit(state: RegistryState, family: Family, handle: Handle): void {
  const { spec } = handle;
  const series = family.series.get(spec.identity);
  if (family.taken) wait(state, family.waiting, handle, 'suffix_taken');
  else if (spec.kind !== family.kind) wait(state, family.waiting, handle, 'kind_conflict');
  else if (series) contend(state, family, series, handle);
  else {
    const limit = overLimit(state, family, spec);
    if (limit) spill(state, family, handle, limit);
    else enrol(openSeries(state, family, spec), handle);
  }
}

/** Whether the name is a part of a histogram or summary that is there. */
function isTaken(state: RegistryState, name: string): boolean {
  return suffixes.some((suffix) => {
    if (!name.endsWith(suffix)) return false;
    const base = state.families.get(name.slice(0, -suffix.length));
    return base !== undefined && !base.taken && (base.kind === 'histogram' || base.kind === 'summary');
  });
}

/** Everybody of a family, out of their places. */
function evict(state: RegistryState, family: Family): Handle[] {
  const handles = [...(family.waiting as Set<Handle>)];
  for (const handle of handles) detach(handle);
  family.waiting.clear();
  for (const series of [...family.series.values()]) handles.push(...clear(state, family, series));
  return handles;
}

/** Decides whose the name is and, if that changed, lets everybody in again. */
function judge(state: RegistryState, family: Family, newcomer?: Handle): void {
  const kind = winningClaim(family.claims.values(), state.catalogKind(family.name)?.kind)?.kind;
  const taken = isTaken(state, family.name);
  const handles = newcomer ? [newcomer] : [];
  const changed = kind !== family.kind || taken !== family.taken;
  if (changed) handles.push(...evict(state, family));
  family.kind = kind;
  family.taken = taken;
  admitAll(state, family, handles);
  if (!changed) return;
  for (const suffix of suffixes) {
    const other = state.families.get(family.name + suffix);
    if (other) judge(state, other);
  }
}

function join(state: RegistryState, handle: Handle): void {
  const family = familyOf(state, handle.spec.family);
  claim(family, handle.spec);
  judge(state, family, handle);
  tidy(state, family);
}

function leave(state: RegistryState, handle: Handle, keep: boolean): void {
  const family = state.families.get(handle.spec.family);
  const { series, waitsIn } = handle;
  if (!family || !(series || waitsIn)) return;
  unclaim(family, handle.spec);
  waitsIn?.delete(handle);
  if (series) withdraw(series, handle);
  else detach(handle);
  if (series && !series.first) admitAll(state, family, clear(state, family, series, keep));
  judge(state, family);
  tidy(state, family);
}

export function createAdmission(state: RegistryState): Admission {
  return {
    join: (handle) => join(state, handle),
    leave: (handle, keep) => leave(state, handle, keep),
    judge: (family) => judge(state, family),
  };
}

/** Series over the limits in all; names and services that come from elsewhere must not grow even these. */
const maxOverflow = 1000;

/** Which limit a new series would break. */
export function overLimit(state: RegistryState, family: Family, spec: SeriesSpec): RefusalReason | undefined {
  if (spec.exempt) return undefined;
  if (family.counted >= state.limits.seriesPerMetric) return 'limit_metric';
  return state.counted >= state.limits.series ? 'limit_total' : undefined;
}

const sameTexts = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((text, i) => text === b[i]);

/** Whether a series from the state is the one that is wanted. */
export function isSameShape(retained: SeriesRecord, spec: Pick<SeriesSpec, 'kind' | 'layout'>): boolean {
  return retained.kind === spec.kind && sameTexts(retained.texts, spec.layout.texts);
}

/** A series over the cells of the state if that has the wanted one, else over new ones. */
function place(state: RegistryState, spec: SeriesSpec, overflow: boolean): Series {
  const { store } = spec.source;
  const retained = store.index?.find(spec.family, spec.identity);
  if (retained && isSameShape(retained, spec)) {
    store.index?.reclaim(retained);
    return new Series(spec, retained.at, retained.born, retained.startMs, overflow);
  }
  if (retained) store.index?.discard(retained);
  const at = store.cells.take(spec.layout.width);
  const series = new Series(spec, at, store.birth(), state.startMs(), overflow);
  store.index?.add(series);
  return series;
}

function count(state: RegistryState, family: Family, series: Series, by: 1 | -1): void {
  state.version += 1;
  family.visible = undefined;
  if (series.overflow) state.overflow += by;
  else if (!series.spec.exempt) {
    state.counted += by;
    family.counted += by;
    const { service } = series;
    const left = (family.services.get(service) ?? 0) + by;
    if (left > 0) family.services.set(service, left);
    else family.services.delete(service);
  }
}

export function openSeries(state: RegistryState, family: Family, spec: SeriesSpec, overflow = false): Series {
  const series = place(state, spec, overflow);
  family.series.set(spec.identity, series);
  count(state, family, series, 1);
  return series;
}

/** Takes a series out of its family; `keep` leaves it in the state for who asks for it next. */
export function closeSeries(state: RegistryState, family: Family, series: Series, keep: boolean): void {
  const { store, at, spec } = series;
  family.series.delete(spec.identity);
  count(state, family, series, -1);
  if (!store.index) store.cells.give(at, spec.layout.width);
  else if (keep) store.index.retain(series);
  else store.index.remove(at, spec.layout.width);
}

/**
 * The series that stands for those of a service over the limit, or undefined when there are too many of its
 * kind. Values of `svc_service` that only the sender made up count for
 * the sender's own service.
 */
export function overflowSeries(state: RegistryState, family: Family, spec: SeriesSpec): Series | undefined {
  const { source } = spec;
  const sent = spec.scope.service;
  const service = sent === '' || family.services.has(sent) ? sent : source.service;
  const place = source.overflow(service);
  const known = family.series.get(place.identity);
  if (known) return known;
  if (state.overflow >= maxOverflow) return undefined;
  return openSeries(state, family, { ...spec, ...place, rawKey: '' }, true);
}
