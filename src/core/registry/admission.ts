import type { Kind } from '../model.ts';
import type { RefusalReason } from '../reasons.ts';
import { addClaim, removeClaim, winnerOf } from './claims.ts';
import { attach, detach, type Handle, ownersOf, withdraw } from './handles.ts';
import { ownerBytes } from './heap-share.ts';
import { compareText } from './labels.ts';
import { isUsedUp } from './limit-shares.ts';
import {
  type Family,
  familyOf,
  type Owner,
  type RegistryState,
  removeIfUnused,
  type Series,
  type SeriesSource,
  type SeriesSpec,
  takeHeap,
} from './registry-state.ts';
import { closeSeries, openSeries, servicesOf } from './series-opening.ts';
import { sameLayout } from './value-stores.ts';

/**
 * Admission decides which handle owns which series. The result depends on which handles exist, not on their order of arrival.
 * Only limits are first come, first served, beyond each source's own share of them (`limit-shares.ts`).
 *
 * A handle is in one of three states:
 * - owner: it has the cells of a series, alone or shared with others (`handle.series`);
 * - waiting: another handle has its name (`kind_conflict`, `suffix_taken`) or its series (`duplicate_source`,
 *   `not_additive`, `unequal_buckets`). Its claim stays, and it is admitted when that handle leaves. As many
 *   handles wait as series may open; the others are refused;
 * - refused: it has no claim, and the registry does not store it. Only another request can admit it.
 *
 * Two questions decide, in this order:
 * 1. Which kind does the name of the family have? (`decideKind`) It is the kind of the winning claim. When the winner changes,
 *    all owners leave the family and are admitted again. For a name whose winner changes often, this is decided before the
 *    next view and not at each change, so that a hostile order of names costs linear time.
 * 2. Does the series exist, and can the handle share it? (`admit`) A series that does not exist opens unless a
 *    limit forbids it; then counters and histograms go into the overflow series of their service.
 */
export interface Admission {
  join(handle: Handle): void;
  /** Removes a handle. `keep`: a durable series whose last owner leaves stays in the state. */
  leave(handle: Handle, keep: boolean): void;
  /** Decides which kind a name has after its claims changed without a handle. */
  decideKind(family: Family): void;
  /** Makes the decisions about names that were postponed. Call it before a view is taken. */
  decidePostponed(): void;
}

/** How many handles may wait for one series. */
const maxWaitingPerSeries = 100;
/** How many handles may at least wait for one name, or in total, however small the limits are. */
const leastWaiting = 100;
/** How many changes of a name take effect at once; later changes wait for the next view. */
const immediateChanges = 16;
/** The total number of overflow series: names and services come from senders, and must not make even these grow without limit. */
const maxOverflow = 1000;
const suffixes = ['_bucket', '_sum', '_count'];

/** Compares two sources that send the same series: negative if `a` keeps it. */
function compareSources(a: SeriesSource, b: SeriesSource): number {
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

/** Compares a handle with the owners of the series: negative if the handle comes first. */
function compareToOwners({ spec: { source }, leader }: Series, { spec }: Handle): number {
  return compareSources(spec.source, source) || compareText(spec.rawKey, leader ?? spec.rawKey);
}

/** Why a handle cannot share a series, or undefined if it can. */
function obstacle(series: Series, spec: SeriesSpec, additive: boolean): RefusalReason | undefined {
  if (compareSources(spec.source, series.spec.source) !== 0) return 'duplicate_source';
  const isSameLayout = sameLayout(spec.layout, series.spec.layout);
  if (spec.kind === 'histogram') return isSameLayout ? undefined : 'unequal_buckets';
  const alone = !series.first || series.first.spec.rawKey === spec.rawKey;
  if (alone && isSameLayout) return undefined;
  return spec.kind === 'counter' || additive ? undefined : 'not_additive';
}

function refuse(state: RegistryState, handle: Handle, reason: RefusalReason): void {
  const { family, rawName, labels, scope } = handle.spec;
  const isKnown = handle.refusal === reason;
  handle.refusal = reason;
  if (!isKnown) state.refusals.record({ family, rawName, labels, reason, service: scope.service });
}

/** Refuses a handle finally: the registry does not store it. */
function reject(state: RegistryState, family: Family, handle: Handle, reason: RefusalReason): void {
  refuse(state, handle, reason);
  removeClaim(family.claims, handle.spec);
}

interface WaitingQueue {
  handles: Set<Owner>;
  most: number;
}

function wait(
  state: RegistryState,
  family: Family,
  { handles, most }: WaitingQueue,
  handle: Handle,
  reason: RefusalReason,
) {
  const isFull =
    handles.size >= most ||
    state.waiting >= Math.max(state.limits.series, leastWaiting) ||
    isHeapFull(state, handle.spec, handle);
  if (isFull) {
    reject(state, family, handle, reason);
    return;
  }
  refuse(state, handle, reason);
  handle.waitsIn = handles.add(handle);
  state.waiting += 1;
}

function stopWaiting(state: RegistryState, handle: Handle): void {
  if (!handle.waitsIn) return;
  handle.waitsIn.delete(handle);
  handle.waitsIn = undefined;
  state.waiting -= 1;
}

function waitForName(state: RegistryState, family: Family, handle: Handle, reason: RefusalReason): void {
  const most = Math.max(state.limits.seriesPerMetric, leastWaiting);
  family.waiting ??= new Set();
  wait(state, family, { handles: family.waiting, most }, handle, reason);
}

function waitForSeries(
  state: RegistryState,
  family: Family,
  series: Series,
  handle: Handle,
  reason: RefusalReason,
): void {
  series.waiting ??= new Set();
  wait(state, family, { handles: series.waiting, most: maxWaitingPerSeries }, handle, reason);
}

/** Removes a series. Returns the handles that owned it or waited for it; they have no series then. */
function clear(state: RegistryState, family: Family, series: Series, keep = false): Handle[] {
  const waiting = [...((series.waiting ?? []) as Iterable<Handle>)];
  const owners = [...ownersOf(series)];
  closeSeries(state, family, series, keep);
  for (const handle of owners) detach(handle);
  for (const handle of waiting) stopWaiting(state, handle);
  return [...owners, ...waiting];
}

function admitAll(state: RegistryState, family: Family, handles: Handle[]): void {
  for (const handle of handles.sort(byOrder)) admit(state, family, handle);
}

/** Gives a series to a handle that comes before its owners. */
function replaceOwners(state: RegistryState, family: Family, series: Series, handle: Handle): void {
  const { spec, waiting } = series;
  // For the waiting handles, an owner from the same source with the same layout makes no difference.
  const isAlike =
    series.first !== undefined &&
    compareSources(handle.spec.source, spec.source) === 0 &&
    sameLayout(handle.spec.layout, spec.layout);
  if (isAlike) series.waiting = undefined;
  const cleared = clear(state, family, series);
  admitAll(state, family, [...cleared, handle]);
  if (!isAlike || !waiting) return;
  const next = handle.series;
  if (!next) for (const one of [...waiting] as Handle[]) stopWaiting(state, one);
  else if (!next.waiting) next.waiting = waiting;
  else {
    for (const one of next.waiting) {
      waiting.add(one);
      (one as Handle).waitsIn = waiting;
    }
    next.waiting = waiting;
  }
}

function contend(state: RegistryState, family: Family, series: Series, handle: Handle): void {
  const reason = obstacle(series, handle.spec, state.catalogKind(family.name)?.additive ?? false);
  const isUnowned = !series.first && reason !== 'duplicate_source';
  if (!reason) attach(series, handle);
  else if (isUnowned || compareToOwners(series, handle) < 0) replaceOwners(state, family, series, handle);
  else waitForSeries(state, family, series, handle, reason);
}

/** Whether series over a limit are added up; a sum of gauges or quantiles would mean nothing. */
export const isSummable = (kind: Kind): boolean => kind === 'counter' || kind === 'histogram';

/** Handles a series over the limit: counters and histograms go into the overflow series, others are refused. */
function overflow(state: RegistryState, family: Family, handle: Handle, limit: RefusalReason): void {
  const { spec } = handle;
  const series = isSummable(spec.kind) ? overflowSeries(state, family, spec) : undefined;
  const reason = series && obstacle(series, spec, false);
  if (!series || reason) reject(state, family, handle, reason ?? limit);
  else {
    refuse(state, handle, limit);
    attach(series, handle);
  }
}

function admit(state: RegistryState, family: Family, handle: Handle): void {
  const { spec } = handle;
  const series = family.series.get(spec.identity);
  const isShared = series?.first !== undefined && spec.isLimited && !spec.isOverflow;
  if (family.taken) waitForName(state, family, handle, 'suffix_taken');
  else if (spec.kind !== family.kind) waitForName(state, family, handle, 'kind_conflict');
  else if (isShared && isHeapFull(state, spec, handle)) overflow(state, family, handle, 'limit_memory');
  else if (series) contend(state, family, series, handle);
  else if (spec.isOverflow) attach(openSeries(state, family, spec, true), handle);
  else {
    const limit = overLimit(state, family, spec, handle);
    if (limit) overflow(state, family, handle, limit);
    else attach(openSeries(state, family, spec), handle);
  }
}

/** Whether the name is a part of an existing histogram or summary. */
export function isTaken(state: RegistryState, name: string): boolean {
  return suffixes.some((suffix) => {
    if (!name.endsWith(suffix)) return false;
    const base = state.families.get(name.slice(0, -suffix.length));
    return base !== undefined && !base.taken && (base.kind === 'histogram' || base.kind === 'summary');
  });
}

/** Removes all handles of a family from their series and returns them. */
function evict(state: RegistryState, family: Family): Handle[] {
  const handles = [...((family.waiting ?? []) as Iterable<Handle>)];
  for (const handle of handles) stopWaiting(state, handle);
  for (const series of [...family.series.values()]) handles.push(...clear(state, family, series));
  return handles;
}

/** Decides which kind the name has and, if that changed, admits all handles again. */
function decideKind(state: RegistryState, family: Family, mayWait: boolean, newHandle?: Handle): void {
  const kind = winnerOf(family.claims)?.kind;
  const taken = isTaken(state, family.name);
  const isChanged = kind !== family.kind || taken !== family.taken;
  const isPutOff = isChanged && mayWait && family.changes >= immediateChanges && family.kind !== undefined;
  if (isPutOff) state.unsettled.add(family);
  if (!isChanged || isPutOff) {
    if (newHandle) admit(state, family, newHandle);
    return;
  }
  state.unsettled.delete(family);
  if (family.kind !== undefined) family.changes += 1;
  const handles = evict(state, family);
  if (newHandle) handles.push(newHandle);
  family.kind = kind;
  family.taken = taken;
  admitAll(state, family, handles);
  for (const suffix of suffixes) {
    const other = state.families.get(family.name + suffix);
    if (other) decideKind(state, other, mayWait);
  }
}

function join(state: RegistryState, handle: Handle): void {
  const { use } = handle.spec.source;
  const family = familyOf(state, handle.spec.family, use);
  addClaim(family.claims, handle.spec);
  decideKind(state, family, true, handle);
  const isHeld = handle.waitsIn !== undefined || !handle.refused;
  if (isHeld && handle.spec.isLimited) {
    handle.heapBytes = ownerBytes(handle.spec);
    takeHeap(state, use, handle.heapBytes);
  }
  removeIfUnused(state, family);
}

function leave(state: RegistryState, handle: Handle, keep: boolean): void {
  const family = state.families.get(handle.spec.family);
  const { series, waitsIn } = handle;
  takeHeap(state, handle.spec.source.use, -handle.heapBytes);
  handle.heapBytes = 0;
  if (!family || !(series || waitsIn)) return;
  removeClaim(family.claims, handle.spec);
  stopWaiting(state, handle);
  if (series) withdraw(series, handle);
  if (series && !series.first) admitAll(state, family, clear(state, family, series, keep));
  decideKind(state, family, true);
  removeIfUnused(state, family);
}

export function createAdmission(state: RegistryState): Admission {
  return {
    join: (handle) => join(state, handle),
    leave: (handle, keep) => leave(state, handle, keep),
    decideKind: (family) => decideKind(state, family, true),
    decidePostponed() {
      for (const family of state.unsettled) {
        decideKind(state, family, false);
        removeIfUnused(state, family);
      }
      state.unsettled.clear();
    },
  };
}

/** The limit that a new series would exceed, in an existing family or in a new one. */
export function overLimit(
  state: RegistryState,
  family: Family | undefined,
  spec: SeriesSpec,
  handle?: Handle,
): 'limit_metric' | 'limit_total' | 'limit_memory' | undefined {
  if (!spec.isLimited) return undefined;
  if ((family?.counted ?? 0) >= state.limits.seriesPerMetric) return 'limit_metric';
  const total = { limit: state.limits.series, total: state.counted };
  if (isUsedUp('series', total, spec.source.use, state.sources)) return 'limit_total';
  return isHeapFull(state, spec, handle) ? 'limit_memory' : undefined;
}

/** Whether the heap has no room for one more series. A handle that exists already, and only changes its place, has room. */
function isHeapFull(
  { heapBytes, limits, sources }: RegistryState,
  { source }: SeriesSpec,
  handle: Handle | undefined,
): boolean {
  if (limits.heapBytes === undefined || handle?.heapBytes) return false;
  return isUsedUp('heapBytes', { limit: limits.heapBytes, total: heapBytes }, source.use, sources);
}

/** Whether a family without an overflow series gets none. */
export const isOverflowFull = (state: RegistryState): boolean => state.overflow >= maxOverflow;

/**
 * The overflow series of a service in a family; undefined if there are too many of them. A value of `svc_service` that only the
 * sender chose counts for the sender's own service.
 */
function overflowSeries(state: RegistryState, family: Family, spec: SeriesSpec): Series | undefined {
  const { source } = spec;
  const sent = spec.scope.service;
  const id = source.overflow(sent === '' || servicesOf(family).has(sent) ? sent : source.service);
  const known = family.series.get(id.identity);
  if (known) return known;
  if (isOverflowFull(state)) return undefined;
  return openSeries(state, family, { ...spec, ...id, rawKey: '' }, true);
}
