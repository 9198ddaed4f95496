import type { Kind, Labels, SeriesView } from '../model.ts';
import type { Component, RefusalReason } from '../reasons.ts';
import { type Claims, createClaims, hasClaims } from './claims.ts';
import { familyBytes } from './heap-share.ts';
import type { SourceUse } from './limit-shares.ts';
import type { Layout, Recordable, SeriesRecord, Store } from './value-stores.ts';

/**
 * The content of a registry: families of series, the claims that raw names have on them, and the refusals. `admission.ts` decides
 * about it; nothing else adds or removes series.
 */
export interface RegistryState {
  readonly families: Map<string, Family>;
  /** Families whose kind must be decided again before the next view. */
  readonly unsettled: Set<Family>;
  readonly refusals: RefusalLog;
  /** The start time for a series that opens now: wall clock in ms, never earlier than an earlier start time. */
  readonly startMs: () => number;
  readonly catalogKind: (family: string) => KnownFamily | undefined;
  readonly scopeOf: (service: string, relayed: boolean) => SeriesScope;
  limits: Pick<Limits, 'seriesPerMetric' | 'series' | 'heapBytes'>;
  /** The sources whose series count against the limits. */
  readonly sources: Set<SourceUse>;
  /** The bytes of heap that series, families and their owners take (`heap-share.ts`). */
  heapBytes: number;
  /** The number of series that count against the limit. */
  counted: number;
  /** The number of series that stand for series over a limit. */
  overflow: number;
  /** The number of handles that wait for a name or a series. */
  waiting: number;
  /** Changes with every series and family that is added or removed. */
  version: number;
}

/** How many series a registry may contain. A series is one label set; a histogram counts once. */
export interface Limits {
  seriesPerMetric: number;
  series: number;
  /** The bytes of heap that series may take, whatever their number (`heap-share.ts`). Default: no limit. */
  heapBytes?: number;
  /** Further forbidden tag names, in any spelling. */
  forbiddenTags: readonly string[];
  /** Tag names whose values are not checked for ids and times. */
  allowValues: readonly string[];
}

/** The known kind of a family before any source sends it. */
export interface KnownFamily {
  kind: Kind;
  additive?: boolean;
  help: string;
}

/** The properties that decide to which reporter block a series belongs; one object for all series with the same two values. */
export interface SeriesScope {
  readonly service: string;
  readonly relayed: boolean;
}

/** Labels with their identity and scope. */
interface SeriesId {
  readonly labels: Labels;
  /** Unambiguous text of the labels. */
  readonly identity: string;
  readonly scope: SeriesScope;
}

/** The source of series. Two sources never share a series: the first in order keeps it. */
export interface SeriesSource {
  readonly rank: number;
  readonly service: string;
  readonly component: Component;
  readonly relayed: boolean;
  readonly store: Store;
  /** How much of the limits the source uses. */
  readonly use: SourceUse;
  /** Whether the totals begin and continue without the agent, because the sender maintains them. */
  readonly externalTotals: boolean;
  /** The id of the series that adds up a family's series over the limit; `''` stands for series without `svc_service`. */
  overflow(service: string): SeriesId;
}

/** A series that a source requests, with names, labels and layout determined. Admission decides whether it opens. */
export interface SeriesSpec extends SeriesId {
  readonly source: SeriesSource;
  /** The sanitized name. */
  readonly family: string;
  readonly kind: Kind;
  readonly rawName: string;
  /** Unambiguous text of the raw name, tags and layout. Orders the specs that compete for one series. */
  readonly rawKey: string;
  readonly layout: Layout;
  readonly help: string;
  /** Received numbers are divided by this; 1 unless a vocabulary says otherwise. */
  readonly divisor: number;
  /** Whether the series counts against the limits, which bound what senders send, not what the agent finds. */
  readonly isLimited: boolean;
  /** Set if the overflow series itself is requested, by a source that tracks the members. */
  readonly isOverflow?: true;
  /** For series of a rule, the names of its tags (`tagNamesOf`). */
  readonly tagNames?: string;
}

/** An owner of a series, as a link of the list of its owners. */
export interface Owner {
  readonly spec: SeriesSpec;
  next: Owner | undefined;
  previous: Owner | undefined;
}

/** A label set of a family and the cells that hold its numbers. */
export class Series implements SeriesView, Recordable {
  readonly spec: SeriesSpec;
  readonly at: number;
  readonly openedStep: number;
  readonly overflow: boolean;
  startMs: number;
  first: Owner | undefined;
  /** Whether several senders share the series, or have shared it: totals are sums of their increases. */
  merged: boolean;
  /** The smallest raw key that ever owned the series; competing specs are compared with it. */
  leader: string | undefined;
  /** Owners that may have the series once its present owners release it. */
  waiting: Set<Owner> | undefined;
  /** The last totals of merged members that left, by their raw key, in case they return. */
  formerMembers: Map<string, Float64Array> | undefined;
  /** Whether `formerMembers` was full and lost members. */
  forgot = false;

  constructor(spec: SeriesSpec, at: number, openedStep: number, startMs: number, overflow: boolean) {
    this.spec = spec;
    this.at = at;
    this.openedStep = openedStep;
    this.startMs = startMs;
    this.overflow = overflow;
    this.merged = overflow;
  }

  get labels(): Labels {
    return this.spec.labels;
  }
  get service(): string {
    return this.spec.scope.service;
  }
  get relayed(): boolean {
    return this.spec.scope.relayed;
  }
  get bounds(): readonly string[] {
    return this.spec.layout.texts;
  }
  get hasSum(): boolean {
    return this.spec.layout.hasSum;
  }
  get hasCount(): boolean {
    return this.spec.layout.hasCount;
  }
  get store(): Store {
    return this.spec.source.store;
  }

  beginAt(nowMs: number): void {
    this.startMs = nowMs;
  }

  record(): SeriesRecord {
    const { at, openedStep, overflow, startMs, labels, bounds, spec } = this;
    const { family, kind, identity, tagNames } = spec;
    return { at, openedStep, overflow, startMs, labels, texts: bounds, family, kind, identity, tagNames };
  }
}

/** Whether the sender maintains the totals of a series: they begin and continue without the agent. */
export function hasExternalTotals(series: SeriesView): boolean {
  return series instanceof Series && series.spec.source.externalTotals;
}

/**
 * All series of one exported name. The name has one kind; owners of other kinds wait. A target may send tens of thousands of
 * families with one series each, so the parts that few families need are created only when needed.
 */
export interface Family {
  readonly name: string;
  readonly claims: Claims;
  /** The source that first requested the family: its heap bytes count for that source. */
  readonly creator: SourceUse;
  /** The series by their identity. */
  readonly series: Map<string, Series>;
  /** Owners of other kinds than the name's, or all owners while the name is taken. */
  waiting: Set<Owner> | undefined;
  kind: Kind | undefined;
  /** Whether the name is `_bucket`, `_sum` or `_count` of a histogram or summary. */
  taken: boolean;
  /** How often the name has changed its kind. */
  changes: number;
  /** The number of series that count against the limit. */
  counted: number;
  /** The number of counted series of each service; only set once a series was over a limit. */
  services: Map<string, number> | undefined;
  visible: VisibleSeries | undefined;
  /** The number of series with each `hashLabels`; only set once a source asked (`over-limit.ts`). */
  hashes: Map<number, number> | undefined;
}

/** Adds to the heap bytes of a source; a negative number subtracts. */
export function takeHeap(state: RegistryState, use: SourceUse, bytes: number): void {
  state.heapBytes += bytes;
  use.heapBytes += bytes;
}

/** The family of a name, created for this source if there is none. */
export function familyOf(state: RegistryState, name: string, creator: SourceUse): Family {
  const known = state.families.get(name);
  if (known) return known;
  const family: Family = {
    name,
    claims: createClaims(state.catalogKind(name)?.kind),
    creator,
    series: new Map(),
    waiting: undefined,
    kind: undefined,
    taken: false,
    changes: 0,
    counted: 0,
    services: undefined,
    visible: undefined,
    hashes: undefined,
  };
  state.families.set(name, family);
  takeHeap(state, creator, familyBytes(name));
  state.version += 1;
  return family;
}

/** Removes a family that has no claims, no series and no waiting owners. */
export function removeIfUnused(state: RegistryState, family: Family): void {
  if (hasClaims(family.claims) || family.series.size > 0 || (family.waiting?.size ?? 0) > 0) return;
  if (state.families.delete(family.name)) takeHeap(state, family.creator, -familyBytes(family.name));
  state.unsettled.delete(family);
  state.version += 1;
}

/** The visible series in the order of their opening, and the store states for which the list is valid. */
interface VisibleSeries {
  readonly all: readonly Series[];
  /** If there is one scope, its series are `all`. */
  readonly groups: readonly { readonly scope: SeriesScope; readonly series: readonly Series[] }[];
  readonly stores: readonly { readonly store: Store; readonly visibility: number }[];
}

function findVisible(family: Family): VisibleSeries {
  const found: Series[] = [];
  const stores: { store: Store; visibility: number }[] = [];
  let [latestStore, latestScope]: [Store?, SeriesScope?] = [];
  const scopes: SeriesScope[] = [];
  for (const series of family.series.values()) {
    const { store } = series;
    if (store !== latestStore && !stores.some((seen) => seen.store === store))
      stores.push({ store, visibility: store.visibility });
    latestStore = store;
    if (series.openedStep >= store.shownStep) continue;
    found.push(series);
    const { scope } = series.spec;
    if (scope !== latestScope && !scopes.includes(scope)) scopes.push(scope);
    latestScope = scope;
  }
  // An array that grew from nothing has room for 17 elements. Each family holds such arrays, and most have one series.
  const all = found.slice();
  const seriesOf = (scope: SeriesScope) =>
    scopes.length === 1 ? all : all.filter(({ spec }) => spec.scope === scope);
  return { all, groups: scopes.map((scope) => ({ scope, series: seriesOf(scope) })), stores: stores.slice() };
}

const isCurrent = ({ stores }: VisibleSeries): boolean =>
  stores.every(({ store, visibility }) => store.visibility === visibility);

/** The family's visible series whose scope is selected. While nothing changes, this costs nothing per series. */
export function visibleSeries(family: Family, takes: (scope: SeriesScope) => boolean): readonly SeriesView[] {
  if (!family.visible || !isCurrent(family.visible)) family.visible = findVisible(family);
  const { all, groups } = family.visible;
  const taken = groups.filter(({ scope }) => takes(scope));
  if (taken.length === groups.length) return all;
  return taken.length === 1 ? taken[0]!.series : taken.flatMap(({ series }) => series);
}

/** A refused series, as the status page lists it. */
export interface Refusal {
  readonly family: string;
  readonly reason: RefusalReason;
  /** The raw name, as the sender spells it. */
  readonly rawName: string;
  readonly labels: Labels;
  readonly service: string;
  readonly atMs: number;
}

export interface RefusalCount {
  readonly family: string;
  readonly reason: RefusalReason;
  readonly count: number;
}

/** Counts refusals by family and reason. Families beyond a bound are counted as `other`. */
interface RefusalLog {
  record(refusal: Omit<Refusal, 'atMs'>): void;
  /** Counts a refusal without listing it among the newest. */
  count(family: string, reason: RefusalReason): void;
  counts(): Iterable<RefusalCount>;
  /** The newest refusals, newest last. */
  latest(): readonly Refusal[];
}

const maxRefusedFamilies = 100;
const maxLatest = 100;

export function createRefusalLog(nowMs: () => number): RefusalLog {
  const families = new Map<string, Map<RefusalReason, number>>();
  /** A ring: `next` is the place of the next refusal. */
  const latest: Refusal[] = [];
  let next = 0;

  const reasonsOf = (family: string): Map<RefusalReason, number> => {
    const name = families.has(family) || families.size < maxRefusedFamilies ? family : 'other';
    const reasons = families.get(name) ?? new Map<RefusalReason, number>();
    families.set(name, reasons);
    return reasons;
  };

  const count = (family: string, reason: RefusalReason) => {
    const reasons = reasonsOf(family);
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  };

  return {
    count,
    record(refusal) {
      count(refusal.family, refusal.reason);
      const { family, reason, rawName, labels, service } = refusal;
      latest[next] = { family, reason, rawName, labels, service, atMs: nowMs() };
      next = (next + 1) % maxLatest;
    },
    *counts() {
      for (const [family, reasons] of families) {
        for (const [reason, count] of reasons) yield { family, reason, count };
      }
    },
    latest: () => [...latest.slice(next), ...latest.slice(0, next)],
  };
}

export function createScopes(): RegistryState['scopeOf'] {
  const scopes = new Map<string, SeriesScope>();
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
