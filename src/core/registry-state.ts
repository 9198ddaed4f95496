import type { Layout } from './histogram.ts';
import { compareText } from './labels.ts';
import { type Kind, kinds, type Labels, type SeriesView } from './model.ts';
import type { Component, RefusalReason } from './reasons.ts';
import type { Recordable, SeriesRecord, Store } from './stores.ts';

/** Which reporter block a series belongs to; one object for all series that agree. */
export interface Scope {
  readonly service: string;
  readonly relayed: boolean;
}

/** Labels with their identity and scope. */
export interface SeriesId {
  readonly labels: Labels;
  /** Unambiguous text of the labels. */
  readonly identity: string;
  readonly scope: Scope;
}

/** Who sends a series. Two sources never share one: the first in order keeps it. */
export interface Source {
  readonly rank: number;
  readonly service: string;
  readonly component: Component;
  readonly relayed: boolean;
  readonly store: Store;
  /** Its totals began, and go on, without the agent: somebody else keeps them. */
  readonly externalTotals: boolean;
  /** Where a family's series over the limit are added up; `''`: they have no `svc_service`. */
  overflow(service: string): SeriesId;
}

/** What a handle was asked for, with everything about its place settled but whether it may be there. */
export interface SeriesSpec extends SeriesId {
  readonly source: Source;
  /** Sanitized. */
  readonly family: string;
  readonly kind: Kind;
  readonly rawName: string;
  /** Unambiguous text of the raw name and tags: who asks. Orders those who spec the same place. */
  readonly rawKey: string;
  readonly layout: Layout;
  readonly help: string;
  /** What received numbers are divided by; 1 unless a vocabulary says otherwise. */
  readonly divisor: number;
  /** Neither limited nor subject to forbidden tags: the agent's own closed label sets. */
  readonly exempt: boolean;
}

/** An owner as its series sees it: a link of the chain of owners. */
export interface Owner {
  readonly spec: SeriesSpec;
  next: Owner | undefined;
  previous: Owner | undefined;
}

/** A label set of a family and the cells that hold its numbers. */
export class Series implements SeriesView, Recordable {
  readonly spec: SeriesSpec;
  readonly at: number;
  readonly born: number;
  readonly overflow: boolean;
  startMs: number;
  first: Owner | undefined;
  /** Several senders meet here, or met at some time: totals are added up by their increases. */
  merged: boolean;
  /** The smallest raw key that ever owned it; what others are compared with. */
  leader: string | undefined;
  /** Owners that want this place and do not get it while others have it. */
  waiting: Set<Owner> | undefined;
  /** Totals of merged members that left, by their raw key, in case they come back. */
  gone: Map<string, Float64Array> | undefined;
  /** Some of them had to be forgotten. */
  forgot = false;

  constructor(spec: SeriesSpec, at: number, born: number, startMs: number, overflow: boolean) {
    this.spec = spec;
    this.at = at;
    this.born = born;
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
  get store(): Store {
    return this.spec.source.store;
  }

  beginAt(nowMs: number): void {
    this.startMs = nowMs;
  }

  record(): SeriesRecord {
    const { at, born, overflow, startMs, labels, bounds, spec } = this;
    const { family, kind, identity } = spec;
    return { at, born, overflow, startMs, labels, texts: bounds, family, kind, identity };
  }
}

/** Whether the totals of a series began, and go on, without the agent: a page's, a store's. */
export function hasExternalTotals(series: SeriesView): boolean {
  return series instanceof Series && series.spec.source.externalTotals;
}

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
  visible: VisibleSeries | undefined;
}

/** The series in visibility, in order of their opening, and how long that is true. */
interface VisibleSeries {
  readonly all: readonly Series[];
  readonly byScope: ReadonlyMap<Scope, readonly Series[]>;
  readonly visibilities: ReadonlyMap<Store, number>;
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
    visible: undefined,
  };
}

type Claimed = Pick<SeriesSpec, 'kind' | 'rawName' | 'help'>;

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

function findVisible(family: Family): VisibleSeries {
  const all: Series[] = [];
  const byScope = new Map<Scope, Series[]>();
  const visibilities = new Map<Store, number>();
  for (const series of family.series.values()) {
    const { store } = series;
    if (!visibilities.has(store)) visibilities.set(store, store.visibility);
    if (series.born >= store.shownStep) continue;
    all.push(series);
    const { scope } = series.spec;
    const group = byScope.get(scope);
    if (group) group.push(series);
    else byScope.set(scope, [series]);
  }
  return { all, byScope, visibilities };
}

function isCurrent({ visibilities }: VisibleSeries): boolean {
  for (const [store, visibility] of visibilities) if (store.visibility !== visibility) return false;
  return true;
}

/** The family's series in sight whose scope is taken. KnownFamily families cost nothing per series. */
export function visibleSeries(family: Family, takes: (scope: Scope) => boolean): readonly SeriesView[] {
  if (!family.visible || !isCurrent(family.visible)) family.visible = findVisible(family);
  const { all, byScope } = family.visible;
  const groups = [...byScope].filter(([scope]) => takes(scope)).map(([, group]) => group);
  if (groups.length === byScope.size) return all;
  return groups.length === 1 ? groups[0]! : groups.flat();
}

/** A series that was refused, as the status page lists it. */
export interface Refusal {
  readonly family: string;
  readonly reason: RefusalReason;
  /** As its sender calls it. */
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

/** Counts refusals: by family and reason, the families beyond a bound together as `other`. */
export interface RefusalLog {
  record(refusal: Omit<Refusal, 'atMs'>): void;
  counts(): Iterable<RefusalCount>;
  /** The newest refusals, newest last. */
  latest(): readonly Refusal[];
}

const maxFamilies = 100;
const maxLatest = 100;

export function createRefusalLog(nowMs: () => number): RefusalLog {
  const families = new Map<string, Map<RefusalReason, number>>();
  const latest: Refusal[] = [];

  const reasonsOf = (family: string): Map<RefusalReason, number> => {
    const name = families.has(family) || families.size < maxFamilies ? family : 'other';
    const reasons = families.get(name) ?? new Map<RefusalReason, number>();
    families.set(name, reasons);
    return reasons;
  };

  return {
    record(refusal) {
      const reasons = reasonsOf(refusal.family);
      reasons.set(refusal.reason, (reasons.get(refusal.reason) ?? 0) + 1);
      latest.push({ ...refusal, atMs: nowMs() });
      if (latest.length > maxLatest) latest.shift();
    },
    *counts() {
      for (const [family, reasons] of families) {
        for (const [reason, count] of reasons) yield { family, reason, count };
      }
    },
    latest: () => latest,
  };
}

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
export interface KnownFamily {
  kind: Kind;
  additive?: boolean;
  help: string;
}

/** Everything that the parts of a registry share. */
export interface RegistryState {
  readonly families: Map<string, Family>;
  readonly refusals: RefusalLog;
  /** When a series starts that starts now; wall clock, ms, and never back. */
  readonly startMs: () => number;
  readonly catalogKind: (family: string) => KnownFamily | undefined;
  readonly scopeOf: (service: string, relayed: boolean) => Scope;
  limits: Pick<Limits, 'seriesPerMetric' | 'series'>;
  /** Series that count against the limit, and those that stand for what is over it. */
  counted: number;
  overflow: number;
  /** Changes with every series and family that comes or goes. */
  version: number;
}

/** The family of a name, made if need be. */
export function familyOf(state: RegistryState, name: string): Family {
  let family = state.families.get(name);
  if (!family) {
    family = createFamily(name);
    state.families.set(name, family);
    state.version += 1;
  }
  return family;
}

/** Forgets a family that nobody claims. */
export function tidy(state: RegistryState, family: Family): void {
  if (family.claims.size > 0 || family.series.size > 0 || family.waiting.size > 0) return;
  state.families.delete(family.name);
  state.version += 1;
}

/** Interned scopes. */
export function createScopes(): RegistryState['scopeOf'] {
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
