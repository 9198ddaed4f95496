import { ownersOf } from './chain.ts';
import { claim, type Family, unclaim, winningClaim } from './family.ts';
import type { Handle } from './handle.ts';
import { sameBounds } from './histogram.ts';
import { detach, enrol, withdraw } from './merging.ts';
import { compareText } from './names.ts';
import { closeSeries, openSeries, overflowSeries, overLimit } from './opening.ts';
import type { RefusalReason } from './reasons.ts';
import { familyOf, type Room, tidy } from './room.ts';
import type { Owner, Series, Source, Want } from './series.ts';

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

/** Waiting in one place; a series that very many want at once is refused to the rest for good. */
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
  compareSources(a.want.source, b.want.source) || compareText(a.want.rawKey, b.want.rawKey);

/** The order of a handle against a series: negative if the handle comes first. */
function against({ want: { source }, leader }: Series, { want }: Handle): number {
  return compareSources(want.source, source) || compareText(want.rawKey, leader ?? want.rawKey);
}

/** Why a handle cannot share a series, or undefined if it can. */
function obstacle(series: Series, want: Want, additive: boolean): RefusalReason | undefined {
  if (compareSources(want.source, series.want.source) !== 0) return 'duplicate_source';
  const sameLayout = sameBounds(want.layout, series.want.layout);
  if (want.kind === 'histogram') return sameLayout ? undefined : 'unequal_buckets';
  const alone = !series.first || series.first.want.rawKey === want.rawKey;
  if (alone && sameLayout) return undefined;
  return want.kind === 'counter' || additive ? undefined : 'not_additive';
}

function refuse(room: Room, handle: Handle, reason: RefusalReason): void {
  const { family, rawName, labels, scope } = handle.want;
  const known = handle.refusal === reason;
  handle.refusal = reason;
  if (!known) room.tally.refused({ family, rawName, labels, reason, service: scope.service });
}

function wait(room: Room, waiting: Set<Owner>, handle: Handle, reason: RefusalReason): void {
  refuse(room, handle, reason);
  handle.waitsIn = waiting.add(handle);
}

/** Who is turned away for good has no claim and is not kept. */
function turnAway(room: Room, family: Family, handle: Handle, reason: RefusalReason): void {
  refuse(room, handle, reason);
  unclaim(family, handle.want);
}

/** Ends a series; who owned it or waited for it comes back without a place. */
function clear(room: Room, family: Family, series: Series, keep = false): Handle[] {
  const handles = [...ownersOf(series), ...((series.waiting ?? []) as Iterable<Handle>)];
  closeSeries(room, family, series, keep);
  for (const handle of handles) detach(handle);
  return handles;
}

function admitAll(room: Room, family: Family, handles: Handle[]): void {
  for (const handle of handles.sort(byOrder)) admit(room, family, handle);
}

function contend(room: Room, family: Family, series: Series, handle: Handle): void {
  const reason = obstacle(series, handle.want, room.catalogKind(family.name)?.additive ?? false);
  const unowned = !series.first && reason !== 'duplicate_source';
  if (!reason) enrol(series, handle);
  else if (unowned || against(series, handle) < 0) {
    admitAll(room, family, [...clear(room, family, series), handle]);
  } else {
    series.waiting ??= new Set();
    if (series.waiting.size < maxWaiting) wait(room, series.waiting, handle, reason);
    else turnAway(room, family, handle, reason);
  }
}

/** Over the limit: into the sum of all those, or away. */
function spill(room: Room, family: Family, handle: Handle, limit: RefusalReason): void {
  const { want } = handle;
  const spills = want.kind === 'counter' || want.kind === 'histogram';
  const series = spills ? overflowSeries(room, family, want) : undefined;
  const reason = series && obstacle(series, want, false);
  if (!series || reason) turnAway(room, family, handle, reason ?? limit);
  else {
    refuse(room, handle, limit);
    enrol(series, handle);
  }
}

function admit(room: Room, family: Family, handle: Handle): void {
  const { want } = handle;
  const series = family.series.get(want.identity);
  if (family.taken) wait(room, family.waiting, handle, 'suffix_taken');
  else if (want.kind !== family.kind) wait(room, family.waiting, handle, 'kind_conflict');
  else if (series) contend(room, family, series, handle);
  else {
    const limit = overLimit(room, family, want);
    if (limit) spill(room, family, handle, limit);
    else enrol(openSeries(room, family, want), handle);
  }
}

/** Whether the name is a part of a histogram or summary that is there. */
function isTaken(room: Room, name: string): boolean {
  return suffixes.some((suffix) => {
    if (!name.endsWith(suffix)) return false;
    const base = room.families.get(name.slice(0, -suffix.length));
    return base !== undefined && !base.taken && (base.kind === 'histogram' || base.kind === 'summary');
  });
}

/** Everybody of a family, out of their places. */
function evict(room: Room, family: Family): Handle[] {
  const handles = [...(family.waiting as Set<Handle>)];
  for (const handle of handles) detach(handle);
  family.waiting.clear();
  for (const series of [...family.series.values()]) handles.push(...clear(room, family, series));
  return handles;
}

/** Decides whose the name is and, if that changed, lets everybody in again. */
function judge(room: Room, family: Family, newcomer?: Handle): void {
  const kind = winningClaim(family.claims.values(), room.catalogKind(family.name)?.kind)?.kind;
  const taken = isTaken(room, family.name);
  const handles = newcomer ? [newcomer] : [];
  const changed = kind !== family.kind || taken !== family.taken;
  if (changed) handles.push(...evict(room, family));
  family.kind = kind;
  family.taken = taken;
  admitAll(room, family, handles);
  if (!changed) return;
  for (const suffix of suffixes) {
    const other = room.families.get(family.name + suffix);
    if (other) judge(room, other);
  }
}

function join(room: Room, handle: Handle): void {
  const family = familyOf(room, handle.want.family);
  claim(family, handle.want);
  judge(room, family, handle);
  tidy(room, family);
}

function leave(room: Room, handle: Handle, keep: boolean): void {
  const family = room.families.get(handle.want.family);
  const { series, waitsIn } = handle;
  if (!family || !(series || waitsIn)) return;
  unclaim(family, handle.want);
  waitsIn?.delete(handle);
  if (series) withdraw(series, handle);
  else detach(handle);
  if (series && !series.first) admitAll(room, family, clear(room, family, series, keep));
  judge(room, family);
  tidy(room, family);
}

export function createAdmission(room: Room): Admission {
  return {
    join: (handle) => join(room, handle),
    leave: (handle, keep) => leave(room, handle, keep),
    judge: (family) => judge(room, family),
  };
}
